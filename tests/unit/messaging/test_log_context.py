"""Which trace the lines of a consumer name: each record's own, with a collector and without."""

import io
import json
import logging
from dataclasses import replace
from types import SimpleNamespace

import pytest
from faststream.exceptions import NackMessage
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.unit.messaging.support import HASTE, NOW, World, candidate
from winnow.contracts.envelope import headers_for
from winnow.contracts.errors import Conflict, Retryable
from winnow.contracts.topics import CANDIDATE
from winnow.messaging.codec import Fetched
from winnow.messaging.consumer import BatchConsumer
from winnow.telemetry import Log, Telemetry, TelemetrySettings
from winnow.telemetry.logs import handler as log_handler
from winnow.telemetry.traces import open_traces, within


def trace_of(n: int) -> str:
    return f"{n:032x}"


def span_of(n: int) -> str:
    return f"{n:016x}"


class Told(World):
    """A consumer whose handler writes a line for each record, and all lines that were written."""

    def __init__(self, **changes):
        super().__init__(**changes)
        self.stream = io.StringIO()
        self.exporter = InMemorySpanExporter()

    def consume(self, telemetry: Telemetry) -> BatchConsumer:
        self.telemetry = telemetry
        self.around = replace(self.around, telemetry=telemetry)
        self.around.dead_letters._telemetry = telemetry
        return BatchConsumer(self.handler, self.around)

    @property
    def lines(self) -> list[dict]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def traces(self, event: str) -> list[str | None]:
        return [line.get("trace_id") for line in self.lines if line["event"] == event]


@pytest.fixture(params=[False, True], ids=["without a collector", "with one"])
def told(request):
    """Lines of a logger of its own; with and without recorded spans."""
    world = Told(patience=replace(HASTE, nack_pause_s=0.0, most_nack_pause_s=0.0))
    logger = logging.getLogger("winnow.test_log_context")
    made = log_handler(TelemetrySettings(log_format="json"), world.stream)
    logger.addHandler(made)
    logger.propagate, level = False, logger.level
    logger.setLevel(logging.DEBUG)
    telemetry = replace(Telemetry.plain("retriever"), log=Log(logger))
    if request.param:
        telemetry = replace(telemetry, traces=open_traces(TelemetrySettings(), "retriever", world.exporter))
    world.recording = request.param
    world.consumer = world.consume(telemetry)
    yield world
    telemetry.close()
    logger.removeHandler(made)
    logger.propagate = True
    logger.setLevel(level)


def fetched(*numbers: int, broken: tuple[int, ...] = ()) -> Fetched:
    """Records of as many traces."""
    records = []
    for n in numbers:
        event = candidate(n, run=f"r{n}")
        said = headers_for(CANDIDATE, event_id=str(event.boundary_id), source="test", subject=event.key, time=NOW)
        said = [*said, ("traceparent", f"00-{trace_of(n)}-{span_of(n)}-01".encode())]
        value = b"{" if n in broken else event.model_dump_json().encode()
        records.append(
            SimpleNamespace(
                topic=CANDIDATE.name, partition=0, offset=n, key=event.key.encode(), headers=tuple(said), value=value, timestamp=0
            )
        )
    return Fetched(tuple(records), None)


async def test_a_line_of_a_record_names_its_own_trace_in_a_batch(told):
    """Three records of three traces in one fetch: what is written of each says which, whatever came before or after."""
    await told.consumer(fetched(1, 2, 3, broken=(2, 3)))
    assert told.traces("record_dead") == [trace_of(2), trace_of(3)]
    told.handler.fail = lambda batch: Conflict() if 5 in {one.event.index for one in batch} else None
    await told.consumer(fetched(4, 5, 6))
    assert told.traces("record_dead") == [trace_of(2), trace_of(3), trace_of(5)]


async def test_a_line_that_a_handler_writes_alone_is_the_records(told):
    """Run one by one, everything that is written while a record is handled names its trace, also by a library."""

    def write(batch):
        logging.getLogger("winnow.test_log_context.library").warning("library says %d", len(batch))
        return KeyError() if len(batch) > 1 else None

    told.handler.fail = write
    await told.consumer(fetched(7, 8))
    of_a_batch, *alone = [line.get("trace_id") for line in told.lines if line["event"].startswith("library says")]
    assert alone == [trace_of(7), trace_of(8)]
    assert of_a_batch not in alone
    assert (of_a_batch is not None) is told.recording, "a batch has a trace of its own where spans are made"
    spans = {line["span_id"] for line in told.lines if line.get("trace_id") == trace_of(7)}
    assert (spans == {span_of(7)}) is not told.recording, "the record's own span where spans are made, else its producer's"


async def test_a_fetch_of_one_record_is_that_records_to_the_end(told):
    """The lines on the batch as a whole, done or sent back, name the trace too."""
    await told.consumer(fetched(9))
    assert told.traces("batch_handled") == [trace_of(9)]
    told.handler.fail = lambda _: Retryable()
    with pytest.raises(NackMessage):
        await told.consumer(fetched(10))
    assert set(told.traces("attempt_failed")) == {trace_of(10)}
    assert told.traces("batch_retried") == [trace_of(10)]
    told.handler.fail = lambda _: KeyError()
    await told.consumer(fetched(11))
    assert told.traces("handler_error") == [trace_of(11)]


async def test_nothing_is_left_over_for_the_next_fetch(told):
    """After a record the trace is nobody's: a line between two fetches names none."""
    await told.consumer(fetched(12))
    told.telemetry.log.warning("lag_unknown")
    assert told.traces("lag_unknown") == [None]


async def test_within_leaves_what_is_current_where_there_is_nothing_to_name(told):
    """None is no context: the surrounding one stays."""
    context = told.telemetry.traces.from_carrier({"traceparent": f"00-{trace_of(1)}-{span_of(1)}-01"})
    with within(context), within(None):
        told.telemetry.log.warning("lag_unknown")
    assert told.traces("lag_unknown") == [trace_of(1)]
