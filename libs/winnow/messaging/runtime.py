"""Services in one process: start together, be watched, stop in order, and end for certain."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from winnow.messaging.health import Check, examine, stacks, vital
from winnow.messaging.settings import KafkaSettings
from winnow.telemetry import Telemetry
from winnow.telemetry.traces import package_version

#: Seconds between looks at the vital checks.
WATCH_EVERY_S = 5.0
#: Looks in a row that must find a problem: one may fall into a rebalance or a garbage collection.
WATCH_LOOKS = 3
#: Seconds between measurements of the event loop's lag.
LAG_EVERY_S = 0.5
#: Exit statuses, from sysexits.h where one fits.
EXIT_OK, EXIT_FAILED, EXIT_STUCK, EXIT_FORCED = 0, 1, 70, 75


class Service(Protocol):
    """One part of the process, wired by its own `app.build`."""

    @property
    def name(self) -> str:
        """For logs and checks."""
        ...

    async def start(self) -> None:
        """Connect and subscribe or listen; returns when it works. Raises what makes a start impossible."""
        ...

    async def stop(self) -> None:
        """Finish the work at hand, let go of partitions and connections. Called once, also after a start that failed or was cancelled."""
        ...

    def checks(self) -> Sequence[Check]:
        """What must be well; the vital ones are liveness, all are readiness."""
        ...


def draining(stop: asyncio.Event) -> Check:
    """Readiness of a process that was asked to stop: red from that moment on, so that nothing new is sent to it."""

    async def ask() -> str | None:
        return "the process stops" if stop.is_set() else None

    return Check(name="draining", ask=ask)


@runtime_checkable
class Drains(Protocol):
    """A service that serves a readiness of its own."""

    def drain(self) -> None:
        """Be unready from now on, and go on working: `stop` follows."""
        ...


def force_exit_after(seconds: float, status: int, telemetry: Telemetry) -> threading.Timer:
    """End the process in `seconds`, whatever hangs: `stop` may hang for ever where the broker is gone (aiokafka#659, #773).

    At-least-once delivery makes it harmless. A thread, because the event loop may be what hangs; cancel it when everything has stopped.
    """

    def end() -> None:
        telemetry.log.error("process_forced_exit", seconds=seconds)
        os._exit(status)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer


async def run(
    services: Sequence[Service],
    *,
    telemetry: Telemetry,
    settings: KafkaSettings,
    stop: asyncio.Event | None = None,
    on_ready: Callable[[], None] | None = None,
    signals: bool = True,
    drain_delay_s: float = 0.0,
) -> int:
    """Run services until SIGTERM, SIGINT or `stop`; return the exit status.

    `stop` is also set by the signals: a check that asks it turns readiness red at that moment, `drain_delay_s` before anything stops.

    They start and stop concurrently, so each pays its own join delay only. A service that cannot start ends the process with 1. Where a
    vital check finds a problem in `WATCH_LOOKS` looks, all stacks are logged and the process ends with 70, to be started anew.
    From the stop on a timer runs: the drain delay and `hard_exit_s` after it, the process ends whatever hangs. A second signal ends it at
    once.
    """
    stopping = stop or asyncio.Event()
    telemetry.log.info("process_started", services=[service.name for service in services], version=package_version())
    with _signals(stopping, telemetry) if signals else contextlib.nullcontext():
        status = await _live(services, stopping, telemetry, on_ready)
        began = time.monotonic()
        telemetry.log.info("process_stopping", status=status)
        for service in services:
            if isinstance(service, Drains):
                service.drain()
        delay = drain_delay_s if status == EXIT_OK else 0.0
        timer = force_exit_after(delay + settings.hard_exit_s, EXIT_FORCED if status == EXIT_OK else status, telemetry)
        try:
            if delay > 0:
                await asyncio.sleep(delay)
            failed = await _stop(services, telemetry)
        finally:
            timer.cancel()
        telemetry.log.info("process_stopped", seconds=round(time.monotonic() - began, 2))
    return EXIT_FAILED if failed and status == EXIT_OK else status


async def _live(services: Sequence[Service], stopping: asyncio.Event, telemetry: Telemetry, on_ready: Callable[[], None] | None) -> int:
    """Start, watch, and wait for the end."""
    stop_asked = asyncio.create_task(stopping.wait(), name="winnow-stop")
    starting = asyncio.create_task(_start(services, telemetry), name="winnow-start")
    watchers: list[asyncio.Task[int]] = []
    try:
        await asyncio.wait({stop_asked, starting}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return EXIT_OK
        if not starting.result():
            return EXIT_FAILED
        if on_ready is not None:
            on_ready()
        watchers = [
            asyncio.create_task(_watch(services, telemetry), name="winnow-watch"),
            asyncio.create_task(_measure_lag(telemetry), name="winnow-loop-lag"),
        ]
        done, _ = await asyncio.wait({stop_asked, *watchers}, return_when=asyncio.FIRST_COMPLETED)
        return next((task.result() for task in watchers if task in done), EXIT_OK)
    finally:
        for task in (stop_asked, starting, *watchers):
            task.cancel()
        await asyncio.gather(stop_asked, starting, *watchers, return_exceptions=True)


async def _start(services: Sequence[Service], telemetry: Telemetry) -> bool:
    """Start all; False where one cannot."""

    async def start(service: Service) -> None:
        began = time.monotonic()
        telemetry.log.info("service_starting", part=service.name)
        await service.start()
        telemetry.log.info("service_ready", part=service.name, seconds=round(time.monotonic() - began, 2))

    results = await asyncio.gather(*(start(service) for service in services), return_exceptions=True)
    failed = [(service, result) for service, result in zip(services, results, strict=True) if isinstance(result, BaseException)]
    for service, error in failed:
        telemetry.log.error("service_failed", exc=error, part=service.name, doing="start", error=error)
    return not failed


async def _stop(services: Sequence[Service], telemetry: Telemetry) -> bool:
    """Stop all; True where one failed."""

    async def stop(service: Service) -> None:
        await service.stop()
        telemetry.log.info("service_stopped", part=service.name)

    results = await asyncio.gather(*(stop(service) for service in services), return_exceptions=True)
    failed = [(service, result) for service, result in zip(services, results, strict=True) if isinstance(result, BaseException)]
    for service, error in failed:
        telemetry.log.error("service_failed", exc=error, part=service.name, doing="stop", error=error)
    return bool(failed)


async def _watch(services: Sequence[Service], telemetry: Telemetry) -> int:
    """Look at the vital checks until one is bad for too long."""
    looks = 0
    while True:
        await asyncio.sleep(WATCH_EVERY_S)
        health = await examine(vital([check for service in services for check in service.checks()]))
        looks = 0 if health.well else looks + 1
        if looks >= WATCH_LOOKS:
            problems = {name: problem for name, problem in health.problems.items() if problem}
            telemetry.log.error("process_stuck", problems=problems)
            dump_stacks(telemetry)
            return EXIT_STUCK


async def _measure_lag(telemetry: Telemetry) -> int:
    """How late the loop wakes us; whoever blocks it starves heartbeats (aiokafka#678)."""
    while True:
        began = time.monotonic()
        await asyncio.sleep(LAG_EVERY_S)
        telemetry.metrics.set("winnow_event_loop_lag_seconds", max(0.0, time.monotonic() - began - LAG_EVERY_S), service=telemetry.service)


def dump_stacks(telemetry: Telemetry) -> None:
    """Log what every thread and task does."""
    telemetry.log.error("stack_dump", stacks=stacks())


@contextlib.contextmanager
def _signals(stopping: asyncio.Event, telemetry: Telemetry) -> Iterator[None]:
    """SIGTERM and SIGINT ask for a stop, the second one ends at once; SIGUSR1 dumps stacks. The handlers before are put back."""
    loop = asyncio.get_running_loop()

    def ask() -> None:
        if stopping.is_set():
            os._exit(128 + signal.SIGINT)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask)
    loop.add_signal_handler(signal.SIGUSR1, lambda: dump_stacks(telemetry))
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            loop.remove_signal_handler(number)
