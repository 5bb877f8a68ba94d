"""Hostile size and shape: four times the text takes about four times the work, never sixteen."""

import time
from collections.abc import Callable

import pytest

from winnow.compaction.identifiers import identifiers_of
from winnow.compaction.openclaw import finish
from winnow.compaction.parse import parse
from winnow.compaction.profiles import PROFILES
from winnow.compaction.prune import render, scaffold
from winnow.contracts.limits import MAX_PINS

#: Growth of linear work is 4, of quadratic 16. CPU time, so that a busy machine does not count.
MOST = 7.0


def cpu_seconds(work: Callable[[], object]) -> float:
    """The least of three runs."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def growth(make: Callable[[int], str], n: int, work: Callable[[str], object]) -> float:
    """The least of up to four attempts: a collection of garbage or a cold cache makes a ratio larger, never smaller."""
    small, large = make(n), make(4 * n)
    found = float("inf")
    for _ in range(4):
        found = min(found, cpu_seconds(lambda: work(large)) / max(cpu_seconds(lambda: work(small)), 1e-4))
        if found < MOST:
            break
    return found


SHAPES: dict[str, Callable[[int], str]] = {
    "bullets": lambda n: "## Decisions\n## Open TODOs\n" + "".join(f"- entry {i} is here\n" for i in range(n)),
    "nested": lambda n: "# S\n" + "".join(" " * (2 * (i % 40)) + f"- entry {i}\n" for i in range(n)),
    "paragraphs": lambda n: "# S\n" + "".join(f"Line {i} of one paragraph\n" for i in range(n)),
    "loose": lambda n: "# S\n" + "".join(f"1. item {i}:\n\n\n- sub {i}\n\n" for i in range(n)),
    "headings": lambda n: "".join(f"{'#' * (1 + i % 6)} {i}\n**b {i}**\n" for i in range(n)),
    "numbered": lambda n: "".join(f"{i}. Section {i}:\n\n\n   - x {i}\n" for i in range(n)),
    "stars": lambda n: "# S\n" + "*" * (n * 600) + "\n" + "a *" * n * 200,
    "brackets": lambda n: "# S\n" + "[(" * (n * 400) + "\n- " + "[x](" * (n * 200),
    "one-line": lambda n: "# S\n- " + "word " * (n * 800),
    "blanks": lambda n: "# S\n- a\n" + "\n" * (n * 40) + "- b:\n" + " \n" * (n * 40),
    "fences": lambda n: "# S\n" + "".join(f"```\n{i}\n```\n" for i in range(n)),
    "open-fences": lambda n: "# S\n" + "".join(f"{'`' * (3 + i % 5)}x {i}\n" for i in range(n)),
    "tables": lambda n: "# S\n" + "".join(f"| a{i} | b |\n|---|---|\n| {i} | 2 |\n" for i in range(n)),
    "quotes": lambda n: "# S\n" + "".join(f"> q {i}\n" for i in range(n)),
    "tags": lambda n: "".join(f"<key_knowledge>{i}</key_knowledge>\n<read-files>\n" for i in range(n)),
    "tags-in-a-line": lambda n: "<state_snapshot>\n" + "<key_knowledge>x</key_knowledge>" * n * 20,
    "open-tags-in-a-line": lambda n: "<state_snapshot>\n" + "<key_knowledge><task_state>" * n * 100,
    "thoughts": lambda n: "<think>a</think>" * (n * 100),
    "unclosed": lambda n: "<analysis>\n" * n,
    "summaries": lambda n: "<summary>\n" + "- a </summary> b\n" * n,
    "truncations": lambda n: "# S\n" + "[x truncated]\n- a truncated [\n" * n,
    "surrogates": lambda n: "# S\n" + "- \ud800\udc00 \U0001f600 é\n" * n,
    "labels": lambda n: "".join(f"LABEL_{i}: x\nTESTS: y\n" for i in range(n)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_parsing_is_linear(shape: str) -> None:
    """Detecting and parsing four times as much takes less than seven times as long, whatever the shape."""
    assert growth(SHAPES[shape], 300, parse) < MOST


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_is_linear(profile: str) -> None:
    """No profile's rules cost more than a pass over a mix of all shapes."""
    assert (
        growth(lambda n: "".join(make(n // 20) + "\n" for make in SHAPES.values()), 600, lambda text: parse(text, profile=profile)) < MOST
    )


def test_pins_are_linear() -> None:
    """A host's pins cost one pass over the text each, and there is a limit to them."""
    pins = [f"e{i % 7}{'ntry'[: i % 4]}" for i in range(MAX_PINS * 4)]
    assert growth(SHAPES["bullets"], 300, lambda text: parse(text, pins=pins)) < MOST


def test_pruning_is_linear() -> None:
    """Scaffold and rendering take one pass."""

    def prune(text: str) -> None:
        parsed = parse(text)
        kept = set(range(1, len(parsed.entries) + 1, 3))
        render(parsed, kept | scaffold(parsed, kept))

    assert growth(SHAPES["nested"], 300, prune) < MOST


def test_identifiers_and_finish_are_linear() -> None:
    """OpenClaw's steps take a pass over messages and summary, also for tokens made to look like many identifiers."""
    assert growth(lambda n: "a.b/" * (n * 40) + "x-" * (n * 40), 1_000, lambda text: identifiers_of([text])) < MOST
    head = "## Decisions\n{}\n## Open TODOs\n## Constraints/Rules\n## Pending user asks\n## Exact identifiers\n"
    assert (
        growth(lambda n: head.format("\U0001f600" * n * 40), 1_000, lambda text: finish(text, latest_request="x", identifiers=["a1"]))
        < MOST
    )


@pytest.mark.parametrize(
    "text",
    [
        "## S\n" + "".join(f"- entry {i} of many\n" for i in range(20_000)),
        "- " + "x" * 5_000_000,
        "*" * 100_000,
        "## S\n- " + "[" * 1_000_000,
        "\ud800" * 1_000_000 + "\n- a",
    ],
    ids=["20,000 bullets", "a line of 5 MB", "100,000 stars", "1 MB of brackets", "1 MB of surrogates"],
)
def test_large_texts_are_parsed_whole(text: str) -> None:
    """Size alone loses nothing: the segments join to the text."""
    assert "".join(segment.text for segment in parse(text).segments) == text
