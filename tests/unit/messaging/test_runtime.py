"""Services in one process: start, watch, stop."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.harness import REPOSITORY, eventually
from winnow.messaging import runtime
from winnow.messaging.health import Check
from winnow.messaging.runtime import EXIT_FAILED, EXIT_OK, EXIT_STUCK, run
from winnow.messaging.settings import KafkaSettings
from winnow.telemetry import Telemetry


class Part:
    """A service that notes what is done to it."""

    def __init__(self, name="part", *, start_error=None, stop_error=None, problem=None, starts=True):
        self.name, self.start_error, self.stop_error, self.problem = name, start_error, stop_error, problem
        self.starts = starts
        self.did = []

    async def start(self):
        self.did.append("start")
        if self.start_error:
            raise self.start_error
        if not self.starts:
            await asyncio.Event().wait()

    async def stop(self):
        self.did.append("stop")
        if self.stop_error:
            raise self.stop_error

    def checks(self):
        async def ask():
            return self.problem

        return [Check(name=self.name, ask=ask, vital=True)]


def running(*parts, **kwargs):
    return run(parts, telemetry=Telemetry.plain("process"), settings=KafkaSettings(), **kwargs)


async def test_services_start_and_stop_when_asked():
    """The event stops all of them, and the exit status is 0."""
    stop, parts = asyncio.Event(), [Part("a"), Part("b")]
    assert await running(*parts, stop=stop, on_ready=stop.set, signals=False) == EXIT_OK
    assert [part.did for part in parts] == [["start", "stop"]] * 2


async def test_a_service_that_cannot_start_ends_the_process():
    """The others are stopped in order; the exit status says failure."""
    parts = [Part("a"), Part("b", start_error=ConnectionError())]
    assert await running(*parts, signals=False) == EXIT_FAILED
    assert parts[0].did == ["start", "stop"]


async def test_a_stop_during_the_start_is_heard():
    """A process that waits for its database can be ended."""
    stop, part = asyncio.Event(), Part(starts=False)
    task = asyncio.create_task(running(part, stop=stop, signals=False))
    await eventually(lambda: part.did)
    stop.set()
    assert await task == EXIT_OK
    assert part.did == ["start", "stop"]


async def test_a_service_that_fails_to_stop_does_not_keep_the_others():
    """All are stopped; the exit status tells."""
    stop, parts = asyncio.Event(), [Part("a", stop_error=KeyError()), Part("b")]
    assert await running(*parts, stop=stop, on_ready=stop.set, signals=False) == EXIT_FAILED
    assert parts[1].did == ["start", "stop"]


async def test_a_stuck_process_dumps_its_stacks_and_ends(monkeypatch, caplog):
    """Three bad looks in a row; the supervisor starts it anew."""
    monkeypatch.setattr(runtime, "WATCH_EVERY_S", 0.001)
    part = Part(problem="the last poll was 61 s ago")
    assert await running(part, signals=False) == EXIT_STUCK
    events = [record.getMessage() for record in caplog.records]
    assert "process_stuck" in events
    assert "stack_dump" in events
    assert part.did == ["start", "stop"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signals_ask_for_a_stop(number):
    """What a supervisor or Ctrl-C sends is a graceful end, and the handlers before are gone afterwards."""
    part = Part()
    assert await running(part, on_ready=lambda: os.kill(os.getpid(), number)) == EXIT_OK
    assert part.did == ["start", "stop"]


SCRIPT = """
    import asyncio, os, signal, sys, time
    from winnow.messaging.runtime import run
    from winnow.messaging.settings import KafkaSettings
    from winnow.telemetry import Telemetry

    class Hanging:
        name = "hanging"
        async def start(self): pass
        async def stop(self):
            print("stopping", flush=True)
            {how}
        def checks(self): return []

    settings = KafkaSettings(graceful_timeout_s=0.1, hard_exit_s=0.5)
    ready = lambda: os.kill(os.getpid(), signal.SIGTERM)
    sys.exit(asyncio.run(run([Hanging()], telemetry=Telemetry.plain(), settings=settings, on_ready=ready, drain_delay_s={delay})))
"""


@pytest.mark.parametrize("how", ["await asyncio.Event().wait()", "time.sleep(1000)"])
def test_a_shutdown_that_hangs_is_ended_by_the_timer(how):
    """Whether a coroutine or the event loop itself hangs, the process is gone after the hard limit (aiokafka#659, #773)."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT.format(how=how, delay=0))],
        check=False, cwd=REPOSITORY, capture_output=True, timeout=30, env={**os.environ, "PYTHONPATH": "libs"},
    )  # fmt: skip
    assert done.stdout == b"stopping\n"
    assert done.returncode == runtime.EXIT_FORCED


def test_a_loop_that_hangs_during_the_drain_delay_is_ended_too():
    """The timer runs from the stop signal on: what blocks the process before anything stops does not keep it for ever."""
    hang = "def drain(self): asyncio.get_running_loop().call_later(0.01, time.sleep, 1000)"
    script = SCRIPT.format(how="pass", delay=0.3).replace("def checks(self)", f"{hang}\n        def checks(self)")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        check=False, cwd=REPOSITORY, capture_output=True, timeout=30, env={**os.environ, "PYTHONPATH": "libs"},
    )  # fmt: skip
    assert (done.stdout, done.returncode) == (b"", runtime.EXIT_FORCED), done.stderr


def test_a_second_signal_ends_at_once():
    """Whoever presses Ctrl-C twice does not wait for the grace."""
    script = SCRIPT.format(how="os.kill(os.getpid(), signal.SIGINT); await asyncio.Event().wait()", delay=0).replace(
        "hard_exit_s=0.5", "hard_exit_s=500"
    )
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        check=False, cwd=REPOSITORY, capture_output=True, timeout=30, env={**os.environ, "PYTHONPATH": "libs"},
    )  # fmt: skip
    assert done.returncode == 130


async def test_the_lag_of_the_event_loop_is_measured(monkeypatch):
    """Whoever blocks the loop is seen on a metric."""
    monkeypatch.setattr(runtime, "LAG_EVERY_S", 0.001)
    telemetry, stop = Telemetry.plain("process"), asyncio.Event()
    task = asyncio.create_task(run([Part()], telemetry=telemetry, settings=KafkaSettings(), stop=stop, signals=False))
    await eventually(lambda: telemetry.metrics.value("winnow_event_loop_lag_seconds", service="process"))
    stop.set()
    assert await task == EXIT_OK


async def test_readiness_turns_red_before_anything_stops():
    """From the stop on `draining` is bad and whoever serves a readiness of its own is told; intake ends a delay later."""

    class Serving(Part):
        def drain(self):
            self.did.append("drain")

    stop, part = asyncio.Event(), Serving()
    check = runtime.draining(stop)
    assert await check.ask() is None
    running_one = asyncio.create_task(running(part, stop=stop, signals=False, drain_delay_s=0.3))
    await eventually(lambda: part.did == ["start"])
    stop.set()
    assert await check.ask() == "the process stops"
    await eventually(lambda: part.did == ["start", "drain"])
    assert not running_one.done()
    assert await running_one == EXIT_OK
    assert part.did == ["start", "drain", "stop"]


async def test_a_stuck_process_does_not_wait_for_a_balancer(monkeypatch):
    """The delay is for a stop that was asked for."""
    monkeypatch.setattr(runtime, "WATCH_EVERY_S", 0.01)
    async with asyncio.timeout(20):
        assert await running(Part(problem="hangs"), stop=asyncio.Event(), signals=False, drain_delay_s=3600) == EXIT_STUCK
