"""One endpoint of a judge: attempts with back-off inside a deadline, behind a circuit breaker."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from winnow.contracts.deadline import Deadline
from winnow.judging.adapters.breaker import Breaker, Circuit
from winnow.judging.adapters.failures import RETRYABLE, Failed, Failure
from winnow.judging.adapters.retrying import Retry, retry_after
from winnow.judging.adapters.transport import Reply, Transport, within

T = TypeVar("T")

#: What a status means; every other one of a class is the class's.
_OF_STATUS: Mapping[int, Failure] = {
    401: Failure.UNAUTHORISED,
    402: Failure.UNPAID,
    403: Failure.UNAUTHORISED,
    408: Failure.TIMEOUT,
    429: Failure.RATE_LIMITED,
    503: Failure.OVERLOADED,
    529: Failure.OVERLOADED,
}
_OK, _MULTIPLE, _BAD, _ERROR, _END = 200, 300, 400, 500, 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the adapters take from the process; tests give their own."""

    #: Monotonic seconds.
    monotonic: Callable[[], float]
    #: The wall clock, with its zone: for a Retry-After that is a date.
    now: Callable[[], datetime]
    #: A number in [0, 1), for pauses.
    jitter: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Called(Generic[T]):
    """How a call ended: with `answer`, or with `failure`."""

    answer: T | None
    failure: Failure | None
    #: HTTP requests that were sent.
    requests: int
    seconds: float


def failure_of(reply: Reply, now: Callable[[], datetime]) -> Failed | None:
    """What a status says; None for a success."""
    status = reply.status
    if _OK <= status < _MULTIPLE:
        return None
    if status in _OF_STATUS:
        failure = _OF_STATUS[status]
    elif _MULTIPLE <= status < _BAD:
        failure = Failure.REDIRECTED
    elif _BAD <= status < _ERROR:
        failure = Failure.REFUSED
    elif _ERROR <= status < _END:
        failure = Failure.SERVER_ERROR
    else:
        failure = Failure.MALFORMED
    return Failed(failure, retry_after_s=retry_after(reply.headers, now))


class Endpoint:
    """Calls one URL. What it remembers is how the endpoint fared, never what was asked."""

    def __init__(self, url: str, transport: Transport, breaker: Breaker, retry: Retry, around: Surroundings, *, attempt_s: float) -> None:
        """`attempt_s`: seconds of one attempt, connecting and body included; `url` was checked."""
        self._url = url
        self._transport = transport
        self._breaker = breaker
        self._retry = retry
        self._around = around
        self._attempt_s = attempt_s

    @property
    def circuit(self) -> Circuit:
        """Where the breaker stands."""
        return self._breaker.state

    async def call(self, headers: Mapping[str, str], body: bytes, read: Callable[[Reply], T], deadline: Deadline) -> Called[T]:
        """Ask until there is an answer, no attempt or no time is left. Raises nothing but cancellation.

        Args:
            headers: the provider's own, with the key.
            body: the request.
            read: makes the answer of a reply of any status; raises `Failed`. A body that cannot be read is not asked for again.
            deadline: of the whole call; a pause that would outlast it is not begun.
        """
        began = self._around.monotonic()
        requests = 0

        def ended(answer: T | None, failure: Failure | None) -> Called[T]:
            return Called(answer=answer, failure=failure, requests=requests, seconds=self._around.monotonic() - began)

        if deadline.passed:
            return ended(None, Failure.DEADLINE)
        if not self._breaker.admits():
            return ended(None, Failure.CIRCUIT_OPEN)
        try:
            while True:
                requests += 1
                try:
                    reply = await within(deadline.at_most(self._attempt_s), self._transport.post(self._url, headers, body))
                    answer = read(reply)
                except Failed as error:
                    pause = self._retry.pause(requests, self._around.jitter(), error.retry_after_s)
                    if error.failure in RETRYABLE and requests <= self._retry.further and pause < deadline.remaining():
                        await self._around.sleep(pause)
                        continue
                    self._breaker.failed(error.failure)
                    return ended(None, error.failure)
                self._breaker.succeeded()
                return ended(answer, None)
        except BaseException:
            self._breaker.gave_up()
            raise
