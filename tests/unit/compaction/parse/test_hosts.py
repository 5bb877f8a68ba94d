"""A small summary of each host: found by its own signs, read by its own rules."""

import pytest

from tests.unit.compaction.parse.cases import Case, verify
from winnow.compaction.parse import parse
from winnow.compaction.profiles import PROFILES, profile_for
from winnow.contracts.vocabulary import SectionClass

HOSTS = {
    "openclaw": [
        ("H", "## Decisions\n"),
        ("E", "- Retry on `eu-2`; `eu-1` answered 503.\n"),
        ("B", "\n"),
        ("H", "## Open TODOs\n"),
        ("E", "- [ ] Rotate the key\n"),
        ("B", "\n"),
        ("H", "## Constraints/Rules\n"),
        ("N", "None.\n"),
        ("B", "\n"),
        ("H", "## Pending user asks\n"),
        ("P", 'Latest user request context: "Rotate it\\nand tell me"\n'),
        ("E", "- Tell the user\n"),
        ("B", "\n"),
        ("H", "## Exact identifiers\n"),
        ("E", "- key_77\n"),
        ("E", "/etc/app/key.pem\n"),
        ("B", "\n"),
        ("S", "## Tool Failures\n- exec: refused\n"),
    ],
    "gemini": [
        ("O", "<scratchpad>private</scratchpad>\n"),
        ("H", "<state_snapshot>\n"),
        ("H", "    <overall_goal>"),
        ("E", "Ship the export."),
        ("H", "</overall_goal>\n"),
        ("H", "    <key_knowledge>\n"),
        ("E", "        - Port 3000 is taken.\n"),
        ("H", "    </key_knowledge>\n"),
        ("H", "    <task_state>\n"),
        ("E", "        1. [DONE] Writer\n"),
        ("H", "    </task_state>\n"),
        ("H", "</state_snapshot>\n"),
    ],
    "claude-code": [
        ("H", "1. Primary Request and Intent:\n"),
        ("E", "   Skip empty rows, and say how many\nwere skipped.\n"),
        ("H", "3. Files and Code Sections:\n"),
        ("E", "   - src/rows.py\n"),
        ("E", "      - ```python\n        # - no bullet\n        ```\n"),
        ("H", "9. Optional Next Step:\n"),
        ("E", "   Run it on `feb.csv`.\n"),
    ],
    "hermes": [
        ("S", "[CONTEXT COMPACTION - REFERENCE ONLY] Earlier turns were compacted.\n"),
        ("H", "## Completed Actions\n"),
        ("E", "1. READ `vault.yml` - 3 keys [tool: read_file]\n"),
        ("H", "## Resolved Questions\n"),
        ("E", "- Q: which env? A: staging\n"),
        ("E", "- Q: which key?\n- A: the second\n"),
        ("B", "\n"),
        ("E", "Q: when?\nA: tonight\n"),
        ("E", "Q: who?\nA: the user\n"),
        ("S", "--- END OF CONTEXT SUMMARY ---\n"),
    ],
    "opencode": [
        ("H", "## Goal\n"),
        ("B", "\n"),
        ("E", "Make the suite green.\n"),
        ("B", "\n"),
        ("H", "## Discoveries\n"),
        ("B", "\n"),
        ("E", "The test needs a clock. It passes with `TZ=UTC`.\n"),
        ("B", "\n"),
        ("H", "## Relevant files / directories\n"),
        ("B", "\n"),
        ("E", "- src/\n  - src/clock.ts (edited)\n"),
    ],
    "pi": [
        ("H", "## Goal\n"),
        ("E", "Add retry.\n"),
        ("H", "## Constraints & Preferences\n"),
        ("N", "(none)\n"),
        ("H", "## Progress\n"),
        ("H", "### Done\n"),
        ("E", "- [x] wrote `retry.ts`\n"),
        ("S", "<read-files>\nup.ts\n</read-files>\n"),
    ],
    "langchain": [
        ("H", "## SESSION INTENT\n"),
        ("E", "Find the leak.\n"),
        ("H", "## ARTIFACTS\n"),
        ("E", "- `heap.txt`\n"),
        ("H", "## NEXT STEPS\n"),
        ("E", "- Compare it\n"),
    ],
    "openhands": [
        ("E", "USER_CONTEXT: wants stdin\n"),
        ("E", "COMPLETED: parser in args.py; tests\n  in tests/args.py\n"),
        ("N", "PENDING: None\n"),
        ("E", "TESTS: 12 passed, 1 failed\n"),
    ],
    "codex": [
        ("S", "Another language model started to solve this problem and produced a summary.\n"),
        ("E", "**Goal:** move `auth` to async.\n"),
        ("H", "**Remaining**\n"),
        ("E", "1. Convert `token.py`\n"),
        ("E", "2. Re-run the suite\n"),
        ("E", "   - expect 2 slow tests\n"),
    ],
    "markdown": [
        ("H", "# Report\n"),
        ("E", "A paragraph.\n"),
        ("B", "\n"),
        ("E", "- a bullet\n"),
    ],
    "prose": [
        ("E", "I looked at the parser and fixed it.\n"),
        ("B", "\n"),
        ("E", "Now the tests pass.\n"),
    ],
}


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_is_found_by_its_signs(name: str) -> None:
    """Without a word from the caller each host's text is read by that host's profile, and so it is when the host is named."""
    text = "".join(part for _, part in HOSTS[name])
    found = parse(text)
    assert (found.profile, found.detected, found.warnings) == (name, True, ())
    named = parse(text, host=name)
    assert (named.profile, named.detected) == (name, False)
    assert named.segments == found.segments


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_is_read_by_its_rules(name: str) -> None:
    """Each host's small summary comes out as written down by hand."""
    parents = {"claude-code": {3: 2}, "codex": {4: 3}}.get(name, {})
    verify(Case(trap=name, profile=name, segments=HOSTS[name], parents=parents))


def test_every_profile_has_a_summary_here() -> None:
    """No profile goes untested."""
    assert set(HOSTS) == set(PROFILES)


@pytest.mark.parametrize(
    ("host", "profile"),
    [("deepagents", "langchain"), ("Codex_CLI", "codex"), ("Gemini CLI", "gemini"), ("CLAUDE-CODE", "claude-code"), ("pi-mono", "pi")],
)
def test_hosts_go_by_several_names(host: str, profile: str) -> None:
    """Aliases lead to a profile, whatever their case and separators."""
    found = profile_for(host)
    assert found is not None
    assert found.name == profile


@pytest.mark.parametrize("host", [None, "", "  ", "no-such-host", "\x00", "x" * 100_000])
def test_unknown_hosts_have_no_profile(host: str | None) -> None:
    """A name that means nothing gives no profile and no error."""
    assert profile_for(host) is None


def test_an_unknown_host_is_a_warning() -> None:
    """The text decides where the host is unknown, and the parse says so."""
    parsed = parse("".join(part for _, part in HOSTS["gemini"]), host="no-such-host")
    assert (parsed.profile, parsed.detected, parsed.warnings) == ("gemini", True, ("host_unknown",))


def test_a_wrong_host_is_a_warning() -> None:
    """A host whose format is nowhere in the text did not write it, nor did one of free format if the text is clearly another's."""
    for host in ("gemini-cli", "pi"):
        parsed = parse("".join(part for _, part in HOSTS["openclaw"]), host=host)
        assert (parsed.profile, parsed.detected, parsed.warnings) == ("openclaw", True, ("host_mismatch",))


def test_an_unknown_profile_is_a_warning() -> None:
    """A profile that does not exist is replaced by what the text shows."""
    parsed = parse("# A\n- b\n", profile="no-such-profile")
    assert (parsed.profile, parsed.detected, parsed.warnings) == ("markdown", True, ("profile_unknown",))


def test_rules_may_be_a_word() -> None:
    """Rules that come as text mean the same as the enumeration; a word that is none is an error."""
    text = "## Exact identifiers\n- a\nb\n"
    assert [entry.text for entry in parse(text, profile="openclaw", rules="published").entries] == ["- a"]
    with pytest.raises(ValueError, match="no-such-rules"):
        parse(text, rules="no-such-rules")


def test_signs_in_a_fence_are_no_signs() -> None:
    """A summary that shows another host's format in a fence is not taken for it."""
    assert parse("# Notes\n```\n<state_snapshot>\n## Decisions\n## Open TODOs\n```\n- a\n").profile == "markdown"


def test_sections_have_classes() -> None:
    """Section classes come from the profile: by the whole name, by a longer heading's start, by the innermost heading that is known."""
    text = "# Checkpoint\n## Key Decisions Made\n- a\n## Next Steps (WP14)\n### Files\n- b\n## 4. Historical Goal\n- c\n## Other\n- d\n"
    classes = [entry.section_class for entry in parse(text, profile="pi").entries]
    assert classes == [SectionClass.MIXED, SectionClass.FORWARD, SectionClass.INTENT, SectionClass.UNKNOWN]


def test_a_huge_heading_is_not_repeated_by_its_entries() -> None:
    """Entries carry at most 200 characters of a heading; the heading itself stays whole."""
    text = "# " + "long " * 50_000 + "\n- a\n- b\n"
    parsed = parse(text)
    assert {len(entry.section) <= 200 for entry in parsed.entries} == {True}
    assert "".join(segment.text for segment in parsed.segments) == text


@pytest.mark.parametrize("fence", ["```markdown", "```", "~~~~md"])
def test_a_fence_around_the_whole_is_taken_off(fence: str) -> None:
    """A model that answers in one Markdown fence has written a summary, not a code block."""
    close = fence.rstrip("markdown")
    case = Case(trap="fence", segments=[("S", f"{fence}\n"), ("H", "## Goal\n"), ("E", "- a\n"), ("B", "\n"), ("S", f"{close}\n")])
    verify(case)


def test_wrappers_may_share_a_line_with_the_text() -> None:
    """Tags around a summary are cut off inside a line, too."""
    verify(
        Case(
            trap="inline",
            profile="prose",
            segments=[
                ("O", "<think>so</think>"),
                ("S", "<summary>"),
                ("E", "It works.\n"),
                ("B", "\n"),
                ("E", "See `</summary>` in the code.\n"),
                ("E", "- b\n- c"[:3]),
                ("S", "</summary>\nrest"),
            ],
        )
    )


@pytest.mark.parametrize("name", ["analysis", "think"])
def test_thinking_that_never_ends_is_a_warning(name: str) -> None:
    """An opening tag without its partner hides nothing: the text is read, and the parse says so."""
    parsed = parse(f"<{name}>\n# A\n- b\n")
    assert parsed.warnings == (f"never_closed:{name}",)
    assert [entry.text for entry in parsed.entries] == ["- b"]


def test_thinking_ends_at_the_summary_tag() -> None:
    """A summary's own tag ends thinking that was not closed."""
    verify(
        Case(
            trap="unclosed",
            segments=[("O", "<analysis>\n- a\n"), ("S", "<summary>\n"), ("H", "# B\n"), ("E", "- c\n"), ("S", "</summary>")],
        )
    )


def test_the_third_template_of_opencode_is_its_own() -> None:
    """What OpenCode writes since 1.18.33 is found by its headings, and its sections have classes."""
    text = "## Objective\nGreen suite.\n\n## Important Details\n- `TZ=UTC`\n\n## Work State\n### Completed\n- clock mocked\n"
    text += "### Active\n- CI\n\n## Next Move\n- push\n"
    found = parse(text)
    assert (found.profile, found.detected) == ("opencode", True)
    assert [entry.section_class.value for entry in found.entries] == ["intent", "observation", "observation", "forward", "forward"]
