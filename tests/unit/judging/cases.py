"""Labelled boundaries of the development set, as the stress transformations take them."""

import json

from tests.harness.data import shared_data
from winnow.compaction.parse import parse
from winnow.contracts.events import Message
from winnow.judging.stress import Case, Labelled


def dev_cases() -> list[Case]:
    """The development set; the test that asks is skipped where it is absent."""
    found = []
    for raw in shared_data("sourcebench", "dev.jsonl").read_text("utf-8").splitlines():
        line = json.loads(raw)
        parsed = parse(line["candidate_summary"], profile="openclaw")
        found.append(
            Case(
                run=line["run"],
                domain=line["domain"],
                task=line["task"],
                previous=line["previous_summary"],
                history=tuple(Message(**message) for message in line["history"]),
                retained=tuple(Message(**message) for message in line["retained"]),
                candidate=line["candidate_summary"],
                entries=tuple(
                    Labelled(n=entry.n, span=entry.span, env=bool(label["env"]), prev=bool(label["prev"]), user=bool(label["user"]))
                    for entry, label in zip(parsed.entries, line["entries"], strict=True)
                ),
            )
        )
    return found
