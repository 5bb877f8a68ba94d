"""The pruner cuts stored spans; the parser leaves out segments. Both ways lead to the same bytes."""

from hypothesis import given
from hypothesis import strategies as st

from winnow.compaction import prune
from winnow.compaction.decide import scaffold, without
from winnow.compaction.parse import parse
from winnow.compaction.segments import Parsed

LINES = st.sampled_from(
    [
        "## Decisions",
        "- a",
        "  - nested",
        "    - deeper",
        "Remaining:",
        "1. one",
        "",
        "text",
        "- [ ] todo",
        "```",
        "None.",
        "- ü 漢字",
        "\tx",
        "| a | b |",
        "|---|---|",
    ]
)
SUMMARIES = st.lists(LINES, max_size=25).map("\n".join)


def both_ways(parsed: Parsed, wanted: set[int]) -> tuple[bytes, bytes]:
    """Prune by the parse and by spans."""
    kept = wanted | prune.scaffold(parsed, wanted)
    gone = [e.span for e in parsed.entries if e.n not in kept]
    return prune.render(parsed, kept).encode(), without(parsed.text.encode(), gone)


@given(SUMMARIES, st.sets(st.integers(1, 25)))
def test_spans_and_segments_give_the_same_bytes(text: str, wanted: set[int]) -> None:
    """Cutting the stored spans out of the candidate's bytes is the same as leaving out the segments of the parse."""
    parsed = parse(text)
    by_parse, by_spans = both_ways(parsed, wanted & {e.n for e in parsed.entries})
    assert by_parse == by_spans


@given(SUMMARIES, st.sets(st.integers(1, 25)))
def test_links_and_parse_give_the_same_scaffold(text: str, wanted: set[int]) -> None:
    """The links that are stored with each entry name the same scaffold as the parse does."""
    parsed = parse(text)
    kept = wanted & {e.n for e in parsed.entries}
    above = {e.n: tuple(n for n in (e.parent, e.lead_in) if n is not None) for e in parsed.entries}
    assert scaffold(above, kept) == prune.scaffold(parsed, kept)
