"""Alive, ready, stuck."""

import asyncio
import json
import threading

import pytest

from winnow.messaging.health import STUCK_POLL_S, Check, Progress, examine, stacks, vital
from winnow.messaging.status import StatusServer
from winnow.telemetry import Telemetry


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def check(name, answer, *, is_vital=False):
    async def ask():
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Check(name=name, ask=ask, vital=is_vital)


def test_a_batch_at_work_is_a_sign_of_life_as_long_as_it_may_take():
    """A handler that waits minutes for a remote judge looks like no hanging consumer; one beyond its limit does."""
    clock = Clock()
    progress = Progress(clock, busy_limit_s=100)
    progress.working()
    clock.now = 99.0
    assert progress.poll_age_s == 0
    clock.now = 101.0
    assert progress.poll_age_s == 101


def test_an_idle_consumer_that_polls_is_alive():
    """Hours without a record are no problem as long as it asks for some."""
    clock = Clock()
    progress = Progress(clock, busy_limit_s=100)
    for _ in range(1000):
        clock.now += STUCK_POLL_S - 1
        progress.polled()
        assert progress.problem is None
    assert progress.commit_age_s > 1000


def test_a_consumer_that_stops_polling_is_stuck():
    """The fetch loop is gone, though a ping would stay green."""
    clock = Clock()
    progress = Progress(clock, busy_limit_s=100)
    clock.now += STUCK_POLL_S + 1
    assert "last poll" in progress.problem


def test_a_long_batch_is_alive_until_its_limit():
    """A slow judge is no reason to be killed; a batch without end is."""
    clock = Clock()
    progress = Progress(clock, busy_limit_s=1000)
    progress.working()
    clock.now += 999
    assert progress.problem is None
    assert progress.idle_s == 0
    clock.now += 2
    assert "at work" in progress.problem
    progress.working()
    assert progress.problem is None
    progress.idle()
    clock.now += 5
    assert progress.idle_s == 5
    progress.committed()
    assert progress.commit_age_s == 0


async def test_checks_are_asked_at_once_and_each_failure_is_told():
    """A check that raises, hangs or complains is a problem; the others are answered."""

    async def hang():
        await asyncio.Event().wait()

    checks = [check("good", None), check("bad", "is down"), check("raises", KeyError("x")), Check(name="hangs", ask=hang)]
    health = await examine(checks, timeout_s=0.01)
    assert not health.well
    assert health.problems["good"] is None
    assert health.problems["bad"] == "is down"
    assert "KeyError" in health.problems["raises"]
    assert "no answer" in health.problems["hangs"]
    assert (await examine([])).well


def test_liveness_is_the_vital_part_of_readiness():
    """A database that is away makes a process unready, not dead."""
    assert [c.name for c in vital([check("database", None), check("progress", None, is_vital=True)])] == ["progress"]


async def test_stacks_show_what_every_thread_and_task_does():
    """Names and functions of all of them, without values."""
    gate = threading.Event()

    def wait_for_the_gate():
        gate.wait()

    async def wait_for_ever():
        await asyncio.Event().wait()

    thread = threading.Thread(target=wait_for_the_gate, name="a-thread")
    thread.start()
    task = asyncio.create_task(wait_for_ever(), name="a-task")
    await asyncio.sleep(0)
    text = stacks()
    gate.set()
    thread.join()
    task.cancel()
    for expected in ("thread a-thread", "wait_for_the_gate", "task a-task", "wait_for_ever"):
        assert expected in text


@pytest.fixture
async def status():
    answers = {"database": None, "progress": None}
    telemetry = Telemetry.plain()
    server = StatusServer(
        "127.0.0.1", 0, lambda: [check("database", answers["database"]), check("progress", answers["progress"], is_vital=True)], telemetry
    )
    await server.start()

    async def get(request):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(request)
        await writer.drain()
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body

    yield answers, get, telemetry
    await server.stop()
    await server.stop()


async def test_the_status_server_tells_alive_from_ready(status):
    """Liveness asks the vital checks only; readiness asks all, and says which is bad."""
    answers, get, _ = status
    assert (await get(b"GET /readyz HTTP/1.1\r\n\r\n"))[0] == 200
    answers["database"] = "is away"
    code, body = await get(b"GET /readyz?x=1 HTTP/1.1\r\n\r\n")
    assert code == 503
    assert json.loads(body)["checks"] == {"database": "is away", "progress": "ok"}
    assert (await get(b"GET /livez HTTP/1.1\r\n\r\n"))[0] == 200
    answers["progress"] = "stuck"
    assert (await get(b"GET /livez HTTP/1.1\r\n\r\n"))[0] == 503


async def test_the_status_server_serves_metrics(status):
    """Prometheus finds what was counted."""
    _, get, telemetry = status
    telemetry.metrics.count("winnow_alerts_total", kind="raised")
    code, body = await get(b"GET /metrics HTTP/1.1\r\n\r\n")
    assert code == 200
    assert b'winnow_alerts_total{kind="raised"} 1.0' in body


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"POST /livez HTTP/1.1\r\n\r\n", 405),
        (b"\x00\xff\r\n\r\n", 405),
        (b"GET /livez", 400),
        (b"", 400),
        (b"GET /" + b"x" * 100_000 + b"\r\n\r\n", 400),
    ],
)
async def test_the_status_server_answers_nonsense_with_an_error(status, request_bytes, code):
    """Unknown paths, other methods, cut and endless requests."""
    _, get, _ = status
    try:
        assert (await get(request_bytes))[0] == code
    except ConnectionResetError:  # the rest of an endless request was still on its way when we closed
        assert len(request_bytes) > 10_000
