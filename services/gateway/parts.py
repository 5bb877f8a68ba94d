"""What a route finds at hand: the gateway's parts, handed over by the composition root."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from fastapi import Request
from opentelemetry.context import get_current
from opentelemetry.trace import SpanKind

from services.gateway.bodies import BodyReader
from services.gateway.handlers import Gateway
from services.gateway.keys import Keys
from services.gateway.operating import Operating
from services.gateway.problems import overloaded
from services.gateway.quotas import Quotas
from services.gateway.settings import GatewaySettings
from services.gateway.watch import CommitWatch
from winnow.messaging.health import Check
from winnow.telemetry import Attr, Telemetry
from winnow.telemetry.traces import MAX_HEADER_BYTES

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of one gateway."""

    settings: GatewaySettings
    gateway: Gateway
    operating: Operating
    keys: Keys
    quotas: Quotas
    bodies: BodyReader
    watch: CommitWatch
    telemetry: Telemetry
    #: Boundaries that wait for the pipeline, by the last reading.
    backlog: Callable[[], int]
    checks: Callable[[], Sequence[Check]]

    def admit(self) -> None:
        """Raise `ProblemError` where the pipeline is too far behind to take another boundary."""
        if self.backlog() > self.settings.gateway_lag_limit:
            raise overloaded("the pipeline is behind; come back later, or go on without", self.settings.gateway_retry_after_s)

    def may_wait(self) -> bool:
        """There is room for one more request that waits."""
        return self.watch.waiting < self.settings.gateway_max_waiting

    async def in_thread(self, work: Callable[[bytes], T], body: bytes) -> T:
        """Work on a large body without holding up everybody else."""
        return await asyncio.to_thread(work, body)


def parts_of(request: Request) -> Parts:
    """The parts of the gateway that got `request`."""
    parts: Parts = request.app.state.parts
    return parts


@contextmanager
def traced(request: Request, name: str, boundary_id: UUID | None) -> Iterator[str | None]:
    """A span in the caller's trace; yields the `traceparent` to store. Without an exporter the caller's own is passed on."""
    traces = parts_of(request).telemetry.traces
    said = {name: request.headers.get(name, "") for name in ("traceparent", "tracestate")}
    carrier = {name: value for name, value in said.items() if 0 < len(value) <= MAX_HEADER_BYTES}
    attributes: dict[str, str] = {} if boundary_id is None else {Attr.BOUNDARY_ID: str(boundary_id)}
    parent = traces.from_carrier(carrier)
    with traces.current(name, context=parent, kind=SpanKind.SERVER, attributes=attributes):
        request.scope["winnow.context"] = get_current()  # the request's own line names it, after the span has ended
        yield traces.traceparent(get_current())
