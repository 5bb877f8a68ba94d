"""Documents that the code can check: configuration, and the events that the pages show."""

import json
import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("page", ["README.md", "docs/operations.md", "docs/security.md", "docs/events.md", "docs/configuration.md"])
def test_links_lead_somewhere_and_commands_exist(page):
    """Each relative link of a page names a file, and each `winnow COMMAND` is one."""
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), target
    app = build()
    commands = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    named = set(re.findall(r"`winnow ([a-z][a-z-]*)|^winnow ([a-z][a-z-]*)", text, re.MULTILINE))
    assert {a or b for a, b in named} <= commands
