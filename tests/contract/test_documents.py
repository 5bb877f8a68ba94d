"""Documents that the code can check: configuration, and the events that the pages show."""

import ast
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tests.contract.configuration import document
from winnow.cli.app import build
from winnow.contracts import events, topics

ROOT = Path(__file__).parents[2]
MODELS = {"candidate": events.Candidate, "runtime": events.RuntimeEvent, "observation": events.Observation}


def examples() -> list[tuple[str, str]]:
    return re.findall(r"^```json (\w+)\n(.*?)^```", (ROOT / "docs" / "events.md").read_text(), re.MULTILINE | re.DOTALL)


def test_the_page_of_settings_is_what_the_code_says():
    """`docs/configuration.md` names every setting with its default."""
    assert (ROOT / "docs" / "configuration.md").read_text() == document(), (
        "a setting changed; if that is meant: python -m tests.contract.configuration > docs/configuration.md"
    )


@pytest.mark.parametrize(("kind", "body"), examples(), ids=lambda text: text[:20])
def test_the_events_in_the_documents_are_valid(kind, body):
    """Each JSON example of `docs/events.md` is accepted, and has no field that would be ignored."""
    event = MODELS[kind].model_validate_json(body)
    assert set(json.loads(body)) <= set(type(event).model_fields)


def test_every_topic_stands_on_the_page_of_events():
    """Names, keys and retention of `docs/events.md` are the registry's."""
    page = (ROOT / "docs" / "events.md").read_text()
    rows = re.findall(r"^\| `(winnow\.[a-z.-]+\.v1)` \| ([\w/ ]+) \| .* \| (\d+) \| [\d,]+ [KM]iB \|$", page, re.MULTILINE)
    assert rows == [(t.name, t.key, str(t.retention.days)) for t in topics.TOPICS]


PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere_and_commands_exist(page):
    """Each relative link of a page names a file, and each `winnow COMMAND` is one, with its subcommand and options."""
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), target
    app = get_command(build())
    said = [*re.findall(r"`winnow ([^`]+)`", text), *(line for block in shell_blocks(text) for line in calls(block))]
    for words in said:
        assert (problem := unknown(app, words)) is None, f"winnow {words}: {problem}"


SOURCES = [path for folder in ("libs", "services") for ending in ("py", "html") for path in sorted((ROOT / folder).rglob(f"*.{ending}"))]


def test_commands_that_messages_advise_exist():
    """Whatever errors, advice and docstrings say in backticks of `winnow`, it can be typed: command, subcommand and options."""
    app = get_command(build())
    found = [(path.name, words) for path in SOURCES for words in re.findall(r"`winnow ([a-z][^`{}\n]*)", path.read_text())]
    assert len(found) > 100
    assert [(name, words, problem) for name, words in found if (problem := unknown(app, words)) is not None] == []


def shell_blocks(text: str) -> list[str]:
    """Commands that a page gives to a shell."""
    return re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def calls(block: str) -> list[str]:
    """What is said to `winnow` in a block, without comments, pipes and what follows."""
    joined = block.replace("\\\n", " ")
    found = re.findall(r"(?:^|[ ;(/&\"])winnow ([a-z][^\n]*)", joined, re.MULTILINE)
    return [re.split(r" +#|[|>;]|\)\"?", one)[0].strip() for one in found]


def unknown(app: Any, words: str) -> str | None:
    """The first command or option in `words` that is none; None: all are."""
    command, path = app, []
    for word in words.split():
        if re.match(r"-(?![0-9.])", word):  # no negative number
            options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
            if (name := word.split("=")[0].rstrip(",.")) not in options and not re.fullmatch(r"-+", name):
                return f"{' '.join(path)} has no option {name}"
        elif hasattr(command, "commands"):
            if word not in command.commands:
                return None if not re.fullmatch(r"[a-z][a-z-]+", word) else f"there is no command {' '.join([*path, word])}"
            command = command.commands[word]
            path.append(word)
    return None


@pytest.mark.parametrize("page", PAGES)
def test_python_on_the_pages_is_python_and_imports_what_there_is(page):
    """Each example can be compiled, and each name that it takes from `winnow` is there."""
    for code in re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL):
        compile(code, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("winnow"):
                try:
                    module = importlib.import_module(node.module or "")
                except ModuleNotFoundError as missing:  # of a host's library, which `make test-hosts` has
                    assert not (missing.name or "").startswith("winnow")  # noqa: PT017  most have none missing
                    continue
                assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == [], page
