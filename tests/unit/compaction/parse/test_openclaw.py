"""OpenClaw's own steps before judging: task first, identifiers, cap, audit, one retry, else cancel."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winnow.compaction.openclaw import MAX_UNITS, TRUNCATED, Attempt, finish, finish_or_cancel, identifiers_of, request_line, utf16_units
from winnow.compaction.parse import parse
from winnow.contracts.vocabulary import SegmentKind

GOOD = (
    "## Decisions\n- Use `eu`\n\n## Open TODOs\nNone.\n\n## Constraints/Rules\nNone.\n\n"
    "## Pending user asks\n{}\n\n## Exact identifiers\n- inv_4411\n"
)


def test_a_good_summary_is_not_touched() -> None:
    """Nothing to do means the same bytes, suffixes behind them."""
    summary = GOOD.format('Latest user request context: "Go"\n- Go on')
    done = finish(summary, latest_request="Go", identifiers=["inv_4411"], suffixes=["\n## Tool Failures\n", "- x\n"])
    assert (done.text, done.audit) == (summary + "\n## Tool Failures\n- x\n", ())


def test_the_task_comes_first_among_the_pending_asks() -> None:
    """The request stands as JSON before the model's asks, which stay; a placeholder goes."""
    done = finish(GOOD.format("- Go on"), latest_request='Send "it"\nnow', identifiers=[])
    assert '## Pending user asks\nLatest user request context: "Send \\"it\\"\\nnow"\n- Go on\n\n' in done.text
    done = finish(GOOD.format("No pending asks."), latest_request="Send", identifiers=[])
    assert '## Pending user asks\nLatest user request context: "Send"\n\n## Exact' in done.text
    assert done.audit == ()


def test_a_task_further_down_moves_up() -> None:
    """The host's line is there once, and first."""
    done = finish(GOOD.format('- Go on\nLatest user request context: "Go"'), latest_request="Go", identifiers=[])
    assert 'asks\nLatest user request context: "Go"\n- Go on\n' in done.text
    assert done.text.count("Latest user request context") == 1


def test_requests_are_written_as_javascript_writes_them() -> None:
    """Text outside ASCII stays, lone surrogates and control characters are escaped."""
    assert request_line("é \u2028 \U0001f600 \ud800 \x00") == 'Latest user request context: "é \u2028 \U0001f600 \\ud800 \\u0000"'


def test_missing_identifiers_are_appended() -> None:
    """Those that the summary lacks stand under the last heading, at most twelve; hashes are found in any case."""
    summary = GOOD.format("None.").replace("inv_4411", "abcdef99")
    done = finish(summary, latest_request=None, identifiers=["ABCDEF99", *(f"order_{n:06}" for n in range(20))])
    assert done.text.endswith("- abcdef99\n" + "\n".join(f"order_{n:06}" for n in range(11)))
    assert done.audit == ()


def test_the_preamble_is_folded_into_the_first_section() -> None:
    """Once the summary is rebuilt, text before the headings stands under Decisions."""
    done = finish("Here it is:\n" + GOOD.format("None."), latest_request="Go", identifiers=[])
    assert done.text.startswith("## Decisions\nHere it is:\n- Use `eu`\n")


@pytest.mark.parametrize("sign", ["a", "é", "\U0001f600"])
def test_the_cap_counts_utf16_units(sign: str) -> None:
    """A summary that is too long is cut to the cap, without half a pair, with marker, headings, task and identifiers."""
    summary = GOOD.format("- " + sign * 20_000).replace("- Use `eu`", "- " + sign * 30_000).replace("- inv_4411", "id " * 9_000)
    done = finish(summary, latest_request="Go", identifiers=["abcdef99", "/a/b/c"], suffixes=["\n## Tool Failures\n- x\n"])
    assert MAX_UNITS - 50 < utf16_units(done.text) <= MAX_UNITS
    assert done.audit == ()
    assert f"\n{TRUNCATED}\n\n## Pending user asks\nLatest" in done.text
    assert "\nabcdef99\n/a/b/c\n## Tool Failures" in done.text
    assert "\ud83d\n" not in done.text


def test_audited_sections_take_a_quarter_at_most() -> None:
    """An identifier list that would fit, but starves the rest, is cut to its share."""
    done = finish(GOOD.format("None.").replace("- inv_4411", "identifier " * 1_000), latest_request=None, identifiers=["identifier"])
    assert done.audit == ()
    assert 3_500 < utf16_units(done.text) < 4_500
    assert TRUNCATED in done.text


def test_suffixes_take_half_at_most() -> None:
    """A host's own suffix cannot push the summary out."""
    done = finish(GOOD.format("None."), latest_request=None, identifiers=[], suffixes=["x" * 20_000])
    assert utf16_units(done.text) == utf16_units(GOOD.format("None.")) + MAX_UNITS // 2


def test_the_audit_names_what_is_wrong() -> None:
    """Missing, doubled and misplaced sections, and identifiers that the cut text lost."""
    assert finish("- a\n", latest_request="Go", identifiers=["x_1"]).audit == (
        "missing_section:Decisions",
        "missing_section:Open TODOs",
        "missing_section:Constraints/Rules",
        "missing_section:Pending user asks",
        "missing_section:Exact identifiers",
        "missing_identifier:x_1",
        "latest_request_not_first",
    )
    doubled = finish(GOOD.format("None.") + "## Decisions\n- b\n", latest_request=None, identifiers=[])
    assert doubled.audit == ("duplicate_section:Decisions",)
    moved = GOOD.format("None.").replace("## Decisions\n- Use `eu`\n\n", "") + "## Decisions\n- b\n"
    assert "section_out_of_order:Open TODOs" in finish(moved, latest_request=None, identifiers=[]).audit


def test_identifiers_that_cannot_fit_fail_the_audit() -> None:
    """Facts that must stay and do not fit are an audit failure, never half an identifier."""
    done = finish(GOOD.format("None."), latest_request="go " * 6_000, identifiers=[])
    assert done.audit == ("too_long",)


def test_one_retry_then_cancel() -> None:
    """The second request knows what was wrong with the first; a second failure cancels."""
    seen: list[Attempt] = []

    def summarise(attempt: Attempt) -> str:
        seen.append(attempt)
        return "no headings" if attempt.number == 1 else GOOD.format("None.")

    done = finish_or_cancel(summarise, latest_request=None, identifiers=[])
    assert done is not None
    assert done.text == GOOD.format("None.")
    assert [attempt.number for attempt in seen] == [1, 2]
    assert seen[1].failures[0] == "missing_section:Decisions"

    def never(attempt: Attempt) -> str:
        seen.append(attempt)
        return ""

    seen.clear()
    assert finish_or_cancel(never, latest_request=None, identifiers=[]) is None
    assert len(seen) == 2


def test_suffixes_from_an_iterator_survive_a_retry() -> None:
    """The suffixes are the same in every attempt, even if they come from a generator."""
    answers = iter(["none", GOOD.format("None.")])
    done = finish_or_cancel(lambda _: next(answers), latest_request=None, identifiers=[], suffixes=iter(["tail"]))
    assert done is not None
    assert done.text.endswith("tail")


@pytest.mark.parametrize("retries", [-1, 4])
def test_retries_have_the_hosts_limits(retries: int) -> None:
    """More than three retries, or fewer than none, is an error of the caller."""
    with pytest.raises(ValueError, match="0 to 3"):
        finish_or_cancel(lambda _: "", latest_request=None, identifiers=[], retries=retries)


def test_what_a_summariser_raises_passes_through() -> None:
    """Its errors are its caller's to handle, not a reason to cancel."""

    def fails(_: Attempt) -> str:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        finish_or_cancel(fails, latest_request=None, identifiers=[])


def test_identifiers_come_from_the_last_ten_messages() -> None:
    """Addresses, paths, host and port, hashes and long numbers, in order, each once, at most twelve."""
    text = "See https://ops.example/q/7?a=1, (/usr/lib/x.py) and C:\\a\\b. deadbeef01 DEADBEEF01 12345678 api.host.io:8080 inv_441122"
    assert identifiers_of(["/old/path/x", *[""] * 9, text]) == (
        "https://ops.example/q/7?a=1",
        "/usr/lib/x.py",
        "C:\\a\\b",
        "DEADBEEF01",
        "12345678",
        "api.host.io:8080",
        "inv_441122",
    )
    assert len(identifiers_of([" ".join(f"order_{n:06}" for n in range(40))])) == 12


@pytest.mark.parametrize(
    "text", ["0.12345678 1.5e10 123456789.25 12345678ms", "and/or 3/4 a:b //", "x" * 600, "abc-def v1.2.3", "", "\x00"]
)
def test_what_is_no_identifier(text: str) -> None:
    """Measured values, words and data are no identifiers."""
    assert identifiers_of([text]) == ()


def test_a_finished_summary_parses_as_openclaw_means_it() -> None:
    """The task line is pinned, appended identifiers are entries, suffixes are the host's."""
    done = finish(GOOD.format("- Go on"), latest_request="Go", identifiers=["/a/b/c"], suffixes=["\n\n## Tool Failures\n- x"])
    parsed = parse(done.text, host="openclaw", pins=["/a/b/c"])
    assert [segment.text for segment in parsed.segments if segment.kind is SegmentKind.PINNED] == ['Latest user request context: "Go"\n']
    assert [(entry.text, entry.pinned_by) for entry in parsed.entries][-1] == ("/a/b/c", "host")
    assert parsed.segments[-1].text == "## Tool Failures\n- x"


pieces = st.sampled_from(
    [
        "## Decisions",
        "## Open TODOs",
        "## Constraints/Rules",
        "## Pending user asks",
        "## Exact identifiers",
        "- a",
        "None.",
        "",
        "x" * 9000,
    ]
)
texts = st.lists(pieces | st.text(max_size=20), max_size=14).map("\n".join)


@given(summary=texts, request=st.none() | st.text(max_size=40), identifiers=st.lists(st.text(min_size=1, max_size=12), max_size=14))
@settings(max_examples=100, deadline=None)
def test_no_text_breaks_the_steps(summary: str, request: str | None, identifiers: list[str]) -> None:
    """Whatever the model writes, the result is within the cap, and finishing it again changes nothing once it passes the audit."""
    done = finish(summary, latest_request=request, identifiers=identifiers)
    assert utf16_units(done.text) <= MAX_UNITS or "too_long" in done.audit
    if not done.audit:
        assert finish(done.text, latest_request=request, identifiers=identifiers) == done
