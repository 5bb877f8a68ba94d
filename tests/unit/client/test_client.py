"""The client over a transport in memory."""

import asyncio
import logging
from uuid import uuid4

import pytest

from tests.unit.client.answers import candidate, line_span, pruned
from winnow.client import Because, IdConflict, Unheard, WinnowClient
from winnow.client.testing import MemoryTransport, unpruned
from winnow.contracts.errors import NotFound, Permanent, Retryable, TooLarge
from winnow.contracts.events import Observation, RuntimeEvent, Sampled
from winnow.contracts.vocabulary import Adopted, Outcome, Reason, RuntimeEventKind


def _told(transport):
    return [(e.kind, e.adopted, e.because) for e in transport.reports if isinstance(e, RuntimeEvent)]


async def test_what_was_adopted_is_reported():
    """A compaction ends with one `adopted` event that names the boundary and the text that is used."""
    transport = MemoryTransport(lambda c, sha: pruned(c, sha, line_span(1)))
    asked = candidate()
    async with WinnowClient(transport) as client:
        result = await client.compact(asked)
        assert await client.drain(5)
    assert result.source is Adopted.COMMITTED
    assert _told(transport) == [(RuntimeEventKind.ADOPTED, Adopted.COMMITTED, None)]
    assert transport.reports[0].boundary_id == asked.boundary_id
    assert not transport.open


async def test_no_answer_in_time_is_the_own_candidate():
    """After the deadline the agent goes on with its own text; that Winnow was asked is no bypass."""
    transport = MemoryTransport(lambda c, sha: None)
    async with WinnowClient(transport) as client:
        result = await client.compact(candidate(), deadline_s=0.05)
        assert await client.drain(5)
    assert (result.summary, result.bypassed_because) == (candidate().candidate, Because.DEADLINE)
    assert result.elapsed_s >= 0.05
    assert _told(transport) == [(RuntimeEventKind.ADOPTED, Adopted.CANDIDATE, "deadline")]


async def test_a_transport_that_ignores_the_deadline_is_cut_off():
    """The client holds the deadline itself."""

    class Slow(MemoryTransport):
        async def ask(self, candidate, request_sha256, deadline, traceparent):
            await asyncio.Event().wait()

    async with WinnowClient(Slow()) as client:
        result = await client.compact(candidate(), deadline_s=0.05)
    assert result.bypassed_because is Because.DEADLINE


@pytest.mark.parametrize(
    ("error", "because"),
    [
        (Unheard(Because.UNREACHABLE), Because.UNREACHABLE),
        (Unheard(Because.UNAUTHORISED), Because.UNAUTHORISED),
        (TooLarge(), Because.TOO_LARGE),
        (RuntimeError("a defect"), Because.INTERNAL),
        (MemoryError(), Because.INTERNAL),
    ],
)
async def test_no_failure_reaches_the_agent(error, because, caplog):
    """Whatever a transport raises, `compact` returns the candidate, and says that Winnow was bypassed once it is back."""

    class Broken(MemoryTransport):
        async def ask(self, candidate, request_sha256, deadline, traceparent):
            raise error

    transport = Broken()
    with caplog.at_level(logging.CRITICAL):
        async with WinnowClient(transport) as client:
            result = await client.compact(candidate())
            assert await client.drain(5)
    assert (result.source, result.bypassed_because) == (Adopted.CANDIDATE, because)
    assert [kind for kind, _, _ in _told(transport)] == [RuntimeEventKind.BYPASSED, RuntimeEventKind.ADOPTED]


async def test_cancelling_the_agent_cancels_the_compaction():
    """A cancelled agent is not kept alive by its compaction."""
    async with WinnowClient(MemoryTransport(lambda c, sha: None)) as client:
        task = asyncio.create_task(client.compact(candidate()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_rejection_is_told_with_its_reason():
    """The agent keeps its candidate, and `adopted` says why."""
    rejected = {"outcome": Outcome.REJECTED, "reason": Reason.TOO_LARGE, "summary": None, "committed_sha256": None}
    transport = MemoryTransport(lambda c, sha: unpruned(c, sha).model_copy(update=rejected))
    async with WinnowClient(transport) as client:
        result = await client.compact(candidate())
        assert await client.drain(5)
    assert (result.bypassed_because, result.reason) == (Because.REJECTED, Reason.TOO_LARGE)
    assert _told(transport) == [(RuntimeEventKind.ADOPTED, Adopted.CANDIDATE, "rejected: too_large")]


async def test_a_resubmission_finds_the_stored_answer():
    """The same boundary twice is asked once, whatever its deadline."""
    asked = []
    transport = MemoryTransport(lambda c, sha: asked.append(c) or unpruned(c, sha))
    async with WinnowClient(transport) as client:
        first = await client.compact(candidate(), deadline_s=5)
        second = await client.compact(candidate(), deadline_s=9)
    assert len(asked) == 1
    assert asked[0].deadline is not None
    assert first.summary == second.summary


async def test_the_same_id_with_other_content_is_a_conflict():
    """Fail-open by default; an error where the caller wants one."""
    same = uuid4()
    transport = MemoryTransport()
    async with WinnowClient(transport) as client:
        await client.compact(candidate(boundary_id=same))
        other = candidate("- other", boundary_id=same)
        result = await client.compact(other)
        assert (result.summary, result.bypassed_because) == ("- other", Because.ID_CONFLICT)
        with pytest.raises(IdConflict):
            await client.compact(other, strict=True)


async def test_wrong_arguments_are_the_callers_errors():
    """What is no boundary and what is no time are errors at once, not silent bypasses."""
    async with WinnowClient(MemoryTransport()) as client:
        with pytest.raises(TypeError, match="boundary"):
            await client.compact("- a")  # type: ignore[arg-type]
        for seconds in (-1, float("nan"), float("inf"), 1e9):
            with pytest.raises(ValueError, match="deadline_s"):
                await client.compact(candidate(), deadline_s=seconds)


async def test_a_deadline_of_zero_does_not_wait():
    """Zero means: tell Winnow nothing, go on."""
    async with WinnowClient(MemoryTransport(lambda c, sha: None)) as client:
        result = await client.compact(candidate(), deadline_s=0)
    assert result.source is Adopted.CANDIDATE


async def test_a_client_that_was_not_entered_is_a_bypass():
    """Outside its context the client answers with the candidate and keeps no event."""
    client = WinnowClient(MemoryTransport())
    result = await client.compact(candidate())
    assert result.bypassed_because is Because.CLOSED
    assert "waiting=0" in repr(client)


async def test_reports_survive_an_outage():
    """Events wait while Winnow is away and arrive when it is back."""
    transport = MemoryTransport()
    async with WinnowClient(transport) as client:
        transport.outage = Retryable()
        for n in range(5):
            client.run_ended(f"r{n}")
        assert not await client.drain(0.05)
        transport.outage = None
        assert await client.drain(5)
    assert sorted(e.run for e in transport.reports) == [f"r{n}" for n in range(5)]


async def test_every_kind_of_report():
    """A host can report what `compact` cannot see."""
    transport = MemoryTransport()
    asked = candidate()
    async with WinnowClient(transport, fleet="mine") as client:
        client.adopted(asked, Adopted.CANDIDATE, because="x" * 1000)
        client.bypassed("r", "host_fallback")
        client.bypassed("r", "")
        client.recovered("r", "h" * 32 + ".e7")
        client.run_ended("r", fleet="other", recovery_tool=False)
        client.observe(
            Observation(event_id=uuid4(), fleet="mine", stream="s", unit="r", sampled=Sampled(probability=1, at="2026-11-30T00:00:00Z"))
        )
        assert await client.drain(5)
    said = sorted((getattr(e, "kind", "observation"), e.fleet) for e in transport.reports)
    bypasses = [("bypassed", "mine")] * 2
    assert said == [("adopted", "f"), *bypasses, ("observation", "mine"), ("recovered", "mine"), ("run_ended", "other")]
    tools = {str(getattr(event, "kind", "observation")): getattr(event, "recovery_tool", None) for event in transport.reports}
    assert tools == {"adopted": None, "bypassed": None, "observation": None, "recovered": True, "run_ended": False}
    (asked,) = [e for e in transport.reports if getattr(e, "kind", None) == "recovered"]
    assert (asked.handle, asked.part) == ("h" * 32, "e7")
    assert max(len(getattr(e, "because", None) or "") for e in transport.reports) == 500


async def test_close_gives_up_after_its_time():
    """An agent that ends is not held by events that cannot be delivered; they are counted as dropped."""
    transport = MemoryTransport()
    client = WinnowClient(transport, drain_s=0.05)
    async with client:
        transport.outage = Retryable()
        client.run_ended("r")
    assert "dropped=1" in repr(client)
    await client.close()


async def test_the_trace_is_passed_on_where_it_is_one():
    """A well-formed trace context reaches the transport; a broken one costs nothing."""
    seen = []

    class Traced(MemoryTransport):
        async def ask(self, candidate, request_sha256, deadline, traceparent):
            seen.append(traceparent)
            return unpruned(candidate, request_sha256)

    good = f"00-{'a' * 32}-{'b' * 16}-01"
    for said in (lambda: good, lambda: "evil\r\nheader: x", lambda: None, lambda: 1 / 0):
        async with WinnowClient(Traced(), traceparent=said) as client:
            assert (await client.compact(candidate())).source is Adopted.COMMITTED
    assert seen == [good, None, None, None]


async def test_originals_and_history_are_read():
    """Reads do raise: an agent that asks for an original must know that it is not there."""
    transport = MemoryTransport()
    transport.originals["h"] = b"\x00\xff"
    async with WinnowClient(transport) as client:
        assert await client.original("h") == b"\x00\xff"
        with pytest.raises(NotFound):
            await client.original("other")
        for index in (1, 2, 3):
            await client.compact(candidate(f"- {index}", index=index))
        assert [v.index for v in await client.history("r")] == [3, 2, 1]
        assert [v.index for v in await client.history("r", most=2)] == [3, 2]
        view = await client.boundary(candidate("- 1").boundary_id)
        assert view.result is not None
        with pytest.raises(NotFound):
            await client.boundary(uuid4())


async def test_an_event_that_is_refused_for_good_does_not_stop_the_next():
    """A permanent refusal drops one event and the queue moves on."""

    class Picky(MemoryTransport):
        async def report(self, event):
            if event.run == "bad":
                raise Permanent
            await super().report(event)

    transport = Picky()
    async with WinnowClient(transport) as client:
        client.run_ended("bad")
        client.run_ended("good")
        assert await client.drain(5)
        assert "sent=1, dropped=1" in repr(client)
