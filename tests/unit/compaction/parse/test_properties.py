"""What holds for every text: segments join to it, spans are exact, pruning removes whole entry segments and nothing else."""

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from winnow.compaction.lines import split_lines
from winnow.compaction.parse import parse
from winnow.compaction.profiles import PROFILES
from winnow.compaction.prune import render, scaffold
from winnow.compaction.segments import Parsed
from winnow.contracts.vocabulary import Rules, SegmentKind

PIECES = [
    "- a", "* b", "+ c", "1. d", "2) e", "(1) f", "a. g", "• h", "✅", "- [ ] i", "- [x] j", "- ", "-", "*", "- None", "(none)", "None.",
    "## Decisions", "## Open TODOs", "## Exact identifiers", "## Pending user asks", "# T #", "#Head", "#12", "3. Current Work:",
    "1. Fix these:", "**Files**", "**Goal:** x", "__b__:", "Remaining:", "PENDING: none", "TESTS:", "COMPLETED: a; b", "Q: x", "A: y",
    "```", "```python", "~~~", "````", "- ```", "> quote", "| a | b |", "|---|---|", "a | b", "--|--", "---", "===", "***", "- - -",
    "<state_snapshot>", "</state_snapshot>", "<key_knowledge>", "</key_knowledge>", "<overall_goal>x</overall_goal>", "<analysis>",
    "</analysis>", "<summary>", "</summary>", "<think>", "</think>", "<read-files>", "</read-files>", "## Tool Failures", "<!-- c -->",
    "<details>", "Latest user request context:", '"json\\n"', "[Earlier compaction context truncated to fit budget]", "Analysis:",
    "Summary:",
    "[PRIOR CONTEXT", "[END OF PRIOR CONTEXT", "[CONTEXT COMPACTION", "--- END OF CONTEXT SUMMARY", "src/", "- src/", "  - src/a.ts (new)",
    "Here is a summary of the conversation to date:", "├── x", "text", "Text and more", "é 😀", "\u2028", "\x0b", "\x00", "\ud800",
    "\udc00", "\ufeff", "\u200b", "\xa0", "\uff1a", "无",
]  # fmt: skip # a list of what is nasty reads better in bulk

lines = st.builds(
    lambda indent, piece, tail: indent + piece + tail,
    st.sampled_from(["", "", "", " ", "  ", "   ", "    ", "\t", "      "]),
    st.sampled_from(PIECES) | st.text(max_size=8),
    st.sampled_from(["", "", "", " x", ":", " ", "`", "|", "</key_knowledge>", "</summary>"]),
)
summaries = st.builds(
    lambda rows, last: "".join(row + end for row, end in rows) + last,
    st.lists(st.tuples(lines, st.sampled_from(["\n", "\n", "\n", "\n\n", "\r\n", "\r", ""])), max_size=14),
    st.sampled_from(["", "- cut `of", "\n"]),
)
texts = summaries | st.text(max_size=200)
profiles = st.none() | st.sampled_from(sorted(PROFILES))
rules = st.sampled_from(list(Rules))


def joined(parsed: Parsed) -> str:
    return "".join(segment.text for segment in parsed.segments)


@given(text=texts, profile=profiles, rules=rules)
@settings(max_examples=100, deadline=None)
@example(text="- a\n\n1. b:\n- c\n\n- None\n\n- d", profile="codex", rules=Rules.WINNOW)
@example(text="<overall_goal>a</overall_goal>```</overall_goal>\n", profile="gemini", rules=Rules.WINNOW)
def test_segments_join_to_the_summary(text: str, profile: str | None, rules: Rules) -> None:
    """Segments, concatenated, are the input, and keeping every entry renders it."""
    parsed = parse(text, profile=profile, rules=rules)
    assert joined(parsed) == text
    assert render(parsed, [entry.n for entry in parsed.entries]) == text
    assert all(segment.text for segment in parsed.segments)


@given(text=texts, profile=profiles, rules=rules)
@settings(max_examples=100, deadline=None)
def test_spans_are_bytes_of_the_summary(text: str, profile: str | None, rules: Rules) -> None:
    """An entry's span cuts its segment out of the encoded summary; entries are numbered in order, parents and lead-ins before them."""
    parsed = parse(text, profile=profile, rules=rules)
    encoded = text.encode("utf-8", "surrogatepass")
    own = {segment.entry: segment.text for segment in parsed.segments if segment.kind is SegmentKind.ENTRY}
    assert sorted(own) == [entry.n for entry in parsed.entries] == list(range(1, len(parsed.entries) + 1))
    for entry in parsed.entries:
        start, end = entry.span
        assert encoded[start:end].decode("utf-8", "surrogatepass") == own[entry.n]
        assert entry.text in own[entry.n]
        assert entry.text.strip()
        assert all(n is None or n < entry.n for n in (entry.parent, entry.lead_in))
    assert len({entry.key for entry in parsed.entries}) == len(parsed.entries)


@given(text=texts, profile=profiles, rules=rules, data=st.data())
@settings(max_examples=100, deadline=None)
def test_pruning_removes_whole_entries_and_nothing_else(text: str, profile: str | None, rules: Rules, data: st.DataObject) -> None:
    """The output is the input minus exactly the segments of the entries that were not kept."""
    parsed = parse(text, profile=profile, rules=rules)
    numbers = [entry.n for entry in parsed.entries]
    chosen = data.draw(st.sets(st.sampled_from(numbers))) if numbers else set()
    kept = chosen | scaffold(parsed, chosen)
    encoded = text.encode("utf-8", "surrogatepass")
    expected, at = b"", 0
    for entry in parsed.entries:
        if entry.n not in kept:
            expected += encoded[at : entry.span[0]]
            at = entry.span[1]
    expected += encoded[at:]
    assert render(parsed, kept).encode("utf-8", "surrogatepass") == expected


@given(text=texts, rules=rules)
@settings(max_examples=100, deadline=None)
def test_parsing_is_a_function_of_its_arguments(text: str, rules: Rules) -> None:
    """The same text gives the same parse, and naming the profile that was found changes nothing but that it was named."""
    first = parse(text, rules=rules)
    assert parse(text, rules=rules) == first
    named = parse(text, profile=first.profile, rules=rules)
    assert (named.segments, named.entries, named.outcome) == (first.segments, first.entries, first.outcome)


@given(text=st.text(alphabet=st.sampled_from("a\r\n\x0b\x0c\x1c\x85\u2028 \ud800"), max_size=40))
@settings(max_examples=100, deadline=None)
def test_lines_end_at_line_feeds_and_carriage_returns_only(text: str) -> None:
    """Lines join to the text, end with a terminator except the last, and hold none before their end."""
    cut = split_lines(text)
    ends = len(re.findall(r"\r\n|\r|\n", text))
    assert "".join(cut) == text
    assert len(cut) == ends + (text != "" and not text.endswith(("\n", "\r")))
    assert all(line.endswith(("\n", "\r")) for line in cut[:-1])
