"""The bridge between a host and the client: it numbers, carries, and never lets a fault out."""

import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.client.answers import LINES, line_span, pruned
from winnow.client import SyncWinnowClient, output
from winnow.client.hosts import Bridge
from winnow.client.hosts.bridge import RUNS, Span
from winnow.client.testing import MemoryTransport
from winnow.contracts.errors import Retryable
from winnow.contracts.events import RuntimeEvent
from winnow.contracts.vocabulary import Mode, RuntimeEventKind

CANDIDATE = "".join(LINES)
COMMITTED = LINES[0] + LINES[1] + LINES[3]


@pytest.fixture
def asked():
    return []


@pytest.fixture
def transport(asked):
    def answers(candidate, request_sha256):
        asked.append(candidate)
        return pruned(candidate, request_sha256, *([line_span(2)] if candidate.candidate == CANDIDATE else []))

    return MemoryTransport(answers)


@pytest.fixture
def bridge(transport):
    with SyncWinnowClient(transport, deadline_s=2.0) as client:
        yield Bridge(client, host="openhands", mode=Mode.ENFORCE)


def span() -> Span:
    return Span(history=[output("12 rows", tool="shell")], task="parse it")


def because(bridge, transport) -> list[str | None]:
    assert bridge._client.drain(10)
    return [r.because for r in transport.reports if isinstance(r, RuntimeEvent) and r.kind is RuntimeEventKind.BYPASSED]


def test_a_run_is_numbered_and_its_committed_text_carried(bridge, asked):
    """The second boundary names the first one and carries what was handed over, where the host does not show it."""
    assert bridge.judged(CANDIDATE, span, run="a") == COMMITTED
    bridge.judged("- next\n", span, run="a")
    bridge.judged("- other\n", span, run=lambda: "b")
    assert [(c.run, c.index) for c in asked] == [("a", 1), ("a", 2), ("b", 1)]
    assert (asked[1].previous_summary, asked[1].previous_boundary_id) == (COMMITTED, asked[0].boundary_id)


def test_a_summary_that_is_not_ours_names_no_boundary(bridge, asked):
    """A host that rewrote its summary carries that text as M; Winnow looks for its parent itself."""
    bridge.judged(CANDIDATE, span, run="a")
    bridge.judged("- next\n", lambda: Span(history=[], previous="rewritten"), run="a")
    assert (asked[1].previous_summary, asked[1].previous_boundary_id) == ("rewritten", None)


def test_whatever_a_wrap_raises_is_a_bypass(bridge, transport, asked):
    """A fault in the host's objects, a hostile text or name, or no text at all: the candidate stays and the bypass is reported."""

    def broken() -> Span:
        raise KeyError("content")

    def nameless() -> str:
        raise LookupError

    assert bridge.judged(CANDIDATE, broken, run="a") == CANDIDATE
    assert bridge.judged("\ud800", span, run="a") == "\ud800"
    assert bridge.judged(CANDIDATE, span, run="\x00") == CANDIDATE
    assert bridge.judged(CANDIDATE, span, run=nameless) == CANDIDATE
    assert bridge.judged(" \n", span, run="a") == " \n"
    assert asked == []
    # A name that no event may carry cannot be reported under it.
    assert because(bridge, transport) == ["adapter_failed", "adapter_failed", "adapter_failed", "empty_summary"]


def test_an_outage_ends_by_the_deadline(bridge, transport):
    """Nothing is heard: the candidate, and a bypass with the client's reason."""
    transport.outage = Retryable()
    assert bridge.judged(CANDIDATE, span, run="a") == CANDIDATE
    transport.outage = None
    assert len(because(bridge, transport)) == 1


def test_a_closed_client_is_no_error(transport):
    """A host that outlives its client goes on with its own summaries."""
    with SyncWinnowClient(transport) as client:
        bridge = Bridge(client, host="pi")
    assert bridge.judged(CANDIDATE, span, run="a") == CANDIDATE


def test_on_result_sees_the_result_and_may_fail(transport):
    """Annotate mode is shown through it; what it raises changes nothing."""
    seen = []

    def look(result) -> None:
        seen.append(result)
        raise ValueError("the caller's")

    with SyncWinnowClient(transport) as client:
        assert Bridge(client, host="pi", on_result=look).judged(CANDIDATE, span, run="a") == COMMITTED
    assert [len(r.unsupported) for r in seen] == [1]


def test_compactions_at_the_same_time_have_different_numbers(bridge, asked):
    """Two threads of one run never submit the same number."""
    threads = [threading.Thread(target=bridge.judged, args=(f"- entry {i}\n", span), kwargs={"run": "a"}) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(c.index for c in asked) == list(range(1, 9))


async def test_an_event_loop_waits_in_a_thread(bridge):
    """The loop goes on; the result is the same."""
    assert await bridge.judged_async(CANDIDATE, span, run="a") == COMMITTED


def test_the_number_of_remembered_runs_is_bounded(bridge):
    """The run that compacted longest ago is forgotten."""
    for i in range(RUNS + 3):
        bridge._begin(f"run-{i}")
    assert f"runs={RUNS})" in repr(bridge)
    assert bridge._begin("run-0").index == 0


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(candidate=st.text(max_size=40), run=st.text(max_size=10), said=st.text(max_size=20))
def test_no_text_makes_it_fail(bridge, candidate, run, said):
    """Whatever the host says, it gets a summary back: its own, or its own without whole lines."""
    text = bridge.judged(candidate, lambda: Span(history=[output(said)]), run=run)
    assert text in {candidate, COMMITTED}


def test_the_end_of_a_run_says_whether_its_agent_could_ask_back(transport):
    """`run_ended` and every other report say what the client was told of the recovery tool; a name that is none stops nobody."""
    with SyncWinnowClient(transport, recovery_tool=True) as client:
        bridge = Bridge(client, host="openhands", fleet="mine")
        bridge.judged(CANDIDATE, span, run="a")
        bridge.run_ended("a")
        bridge.run_ended(lambda: "b", recovery_tool=False)
        bridge.run_ended("")
    said = sorted((r.kind.value, r.run, r.fleet, r.recovery_tool) for r in transport.reports if isinstance(r, RuntimeEvent))
    assert said == [("adopted", "a", "mine", True), ("run_ended", "a", "mine", True), ("run_ended", "b", "mine", False)]
