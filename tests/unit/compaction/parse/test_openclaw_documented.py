"""The documented way from OpenClaw's messages to a candidate."""

import re
from typing import Any

from tests.harness.data import REPOSITORY
from winnow.compaction.openclaw import MAX_UNITS, utf16_units
from winnow.compaction.parse import parse
from winnow.contracts.vocabulary import SegmentKind

SECTIONS = ("Decisions", "Open TODOs", "Constraints/Rules", "Pending user asks", "Exact identifiers")
SUMMARY = "\n".join(f"## {name}\nNone.\n" for name in SECTIONS)


def documented() -> dict[str, Any]:
    """Run the code block of the page; its `compressor` comes from the test."""
    page = (REPOSITORY / "docs" / "parsing.md").read_text()
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "finish_or_cancel" in block]
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102  our own documentation
    return names


def test_the_documented_provider_finishes_before_judging():
    """The request comes first among the asks and is pinned, a missing identifier is appended, and the result keeps the cap."""
    names = documented()
    asked: list[tuple[str, ...]] = []

    def compressor(messages: list[str], *, objections: tuple[str, ...]) -> str:
        asked.append(objections)
        return SUMMARY

    names["compressor"] = compressor
    text = names["candidate_of"](["invoice https://ops.example/q/7 was refused", "see billing/out.csv:12"], "Send the March invoices")
    assert text is not None
    assert utf16_units(text) <= MAX_UNITS
    assert asked == [()]
    parsed = parse(text, host="openclaw")
    pinned = [s.text for s in parsed.segments if s.kind is SegmentKind.PINNED]
    assert any("Send the March invoices" in line for line in pinned)
    assert "https://ops.example/q/7" in text


def test_the_documented_provider_cancels_where_the_audit_objects_twice():
    """A compressor that writes no sections is asked once more, told why, and then there is no compaction."""
    names = documented()
    asked: list[tuple[str, ...]] = []

    def compressor(messages: list[str], *, objections: tuple[str, ...]) -> str:
        asked.append(objections)
        return "I refuse to use headings."

    names["compressor"] = compressor
    assert names["candidate_of"](["nothing"], None) is None
    assert len(asked) == 2
    assert asked[1]
