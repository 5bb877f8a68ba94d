"""The page on compaction prompts, from its data: `python -m tests.contract.prompts > docs/prompts.md`."""

import json
from collections import Counter
from pathlib import Path

DATA = Path(__file__).parents[2] / "docs" / "prompts.json"
QUESTIONS = ("facts", "decisions", "plans", "intent")
MARKS = {"requested": "yes", "weaker": "weaker", "no": "–"}

HEAD = """# What hosts ask of their compressors

A summary holds what its prompt asks for. Most compaction prompts ask for more than what the environment said: decisions, next steps, what
the user is after. Those are the entries that Winnow looks at. This page is made from `docs/prompts.json`; each prompt was read in its
official source, at the commit or in the release named, on {read_on}.

- **facts**: results, files, identifiers, errors.
- **decisions**: *yes* where the prompt asks for decisions with their reasons, *weaker* where it asks for decisions alone.
- **plans**: what remains, next steps, open tasks.
- **intent**: *yes* where a goal or request is said to be the user's, *weaker* where it is only a goal.

"""
COUNTS = """
Of {n} prompts, {plans} ask for plans, {decisions} for decisions ({reasons} with reasons), {either} for one of the two, {intent} for the
user's intent and {facts} for facts. The survey in the paper on Source-Judged Compaction counts 29 prompts, of which 21 ask for decisions
or next steps (18 for decisions, 17 for remaining work). It does not say of each prompt how it was counted, and the two lists are not the
same.

Two prompts, of Semantic Kernel and Microsoft Agent Framework, forbid the compressor to interpret or presume, and ask for no plans.
"""


def document() -> str:
    """The page."""
    data = json.loads(DATA.read_text())
    prompts = data["prompts"]
    rows = ["| host | " + " | ".join(QUESTIONS) + " | what it asks for | source |", "| --- |" + " --- |" * (len(QUESTIONS) + 2)]
    for one in prompts:
        marks = " | ".join(MARKS[one["asks"][q]] for q in QUESTIONS)
        rows.append(f"| {one['host']} | {marks} | {one['why']} | {_source(one)} |")
    said = {q: Counter(one["asks"][q] for one in prompts) for q in QUESTIONS}
    counts = COUNTS.format(
        n=len(prompts),
        plans=said["plans"]["requested"],
        decisions=len(prompts) - said["decisions"]["no"],
        reasons=said["decisions"]["requested"],
        either=sum(one["asks"]["plans"] != "no" or one["asks"]["decisions"] != "no" for one in prompts),
        intent=said["intent"]["requested"],
        facts=said["facts"]["requested"],
    )
    others = "\n".join(f"- {one['host']}: {one['why']}." for one in data["not_verified"])
    return HEAD.format(read_on=data["read_on"]) + "\n".join(rows) + "\n" + counts + f"\n## Not verified\n\n{others}\n"


def _source(one: dict) -> str:
    """Where it was read, so that it can be read again."""
    if one["commit"]:
        link = f"[{one['commit'][:10]}]({one['source']}/blob/{one['commit']}/{one['file']})"
        return link + (f", {one['date']}" if one["date"] else "")
    return f"{one['source']} {one['release']}" + (f", {one['date']}" if one["date"] else "") + f": {one['file']}"


if __name__ == "__main__":
    print(document(), end="")  # noqa: T201  its output is the page
