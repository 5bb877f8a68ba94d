"""The synchronous twin."""

import concurrent.futures
import inspect
import threading
from uuid import uuid4

import pytest

from tests.unit.client.answers import candidate, line_span, pruned
from winnow.client import Because, IdConflict, SyncWinnowClient, WinnowClient
from winnow.client.testing import MemoryTransport
from winnow.contracts.errors import NotFound, Retryable
from winnow.contracts.vocabulary import Adopted


def test_a_compaction_without_an_event_loop():
    """The same answer, the same reports, from plain code."""
    transport = MemoryTransport(lambda c, sha: pruned(c, sha, line_span(1)))
    with SyncWinnowClient(transport) as client:
        result = client.compact(candidate())
        assert client.drain(5)
    assert result.source is Adopted.COMMITTED
    assert len(transport.reports) == 1
    assert not transport.open


def test_all_methods_of_the_client_are_there():
    """The twin offers what the client offers, with the same parameters."""
    for name, method in inspect.getmembers(WinnowClient, inspect.isfunction):
        if not name.startswith("_"):
            twin = getattr(SyncWinnowClient, name)
            assert list(inspect.signature(twin).parameters) == list(inspect.signature(method).parameters), name


def test_many_threads_share_one_client():
    """Compactions of several threads run at once and each gets its own answer."""
    with SyncWinnowClient(MemoryTransport()) as client, concurrent.futures.ThreadPoolExecutor(8) as pool:
        texts = [f"- {n}" for n in range(40)]
        assert [r.summary for r in pool.map(lambda t: client.compact(candidate(t)), texts)] == texts


def test_errors_come_out_where_they_belong():
    """Arguments, conflicts and reads raise in the calling thread."""
    same = uuid4()
    with SyncWinnowClient(MemoryTransport(), strict=True) as client:
        with pytest.raises(ValueError, match="deadline_s"):
            client.compact(candidate(), deadline_s=-1)
        client.compact(candidate(boundary_id=same))
        with pytest.raises(IdConflict):
            client.compact(candidate("- other", boundary_id=same))
        with pytest.raises(NotFound):
            client.original("h")
        with pytest.raises(NotFound):
            client.boundary(uuid4())
        client.run_ended("r")
        client.recovered("r", "h" * 32)
        client.bypassed("r", "x")
        client.adopted(candidate(), Adopted.CANDIDATE)
        assert client.history("r")
        assert client.drain(5)


def test_outside_its_context_it_bypasses():
    """Not entered, or closed: the agent goes on, reads say what to do."""
    client = SyncWinnowClient(MemoryTransport())
    assert client.compact(candidate()).bypassed_because is Because.CLOSED
    with pytest.raises(Retryable, match="with SyncWinnowClient"):
        client.original("h")
    with client:
        pass
    client.close()
    assert client.compact(candidate()).bypassed_because is Because.CLOSED


def test_a_stuck_loop_does_not_hold_the_agent():
    """Where the loop's thread hangs, the agent still goes on shortly after its deadline."""
    release = threading.Event()

    class Hung(MemoryTransport):
        async def ask(self, candidate, request_sha256, deadline, traceparent):
            release.wait(20)

    with SyncWinnowClient(Hung()) as client:
        result = client.compact(candidate(), deadline_s=0.05)
        release.set()
    assert result.bypassed_because is Because.INTERNAL


def test_the_thread_ends_with_the_client():
    """A closed client leaves no thread."""
    before = threading.active_count()
    with SyncWinnowClient(MemoryTransport()):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
