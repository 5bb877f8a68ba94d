"""What the unit tests of messaging share: a handler to script, a publisher that keeps what it is given, records and clocks."""

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime

from winnow.contracts.envelope import headers_for
from winnow.contracts.events import Candidate
from winnow.contracts.topics import CANDIDATE, EVIDENCE
from winnow.messaging.deadletters import DeadLetters
from winnow.messaging.fakes import MemoryDeadLetters
from winnow.messaging.faults import Limit, Patience, classify
from winnow.messaging.health import Progress
from winnow.messaging.publisher import check_size
from winnow.messaging.records import Handled, Outgoing, Received, Record
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.surroundings import Surroundings
from winnow.messaging.work import Worker
from winnow.telemetry import Telemetry

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
#: No test waits for a pause.
HASTE = Patience(
    first_pause_s=0.0001,
    most_pause_s=0.0002,
    nack_pause_s=0.0001,
    most_nack_pause_s=0.0002,
    too_new_pause_s=0.01,
    halted_pause_s=0.001,
)


def candidate(n=1, *, run="r", fleet="f", text=None):
    return Candidate(fleet=fleet, run=run, index=n, candidate=text or f"- entry {n}\n")


def record(event=None, *, offset=0, partition=0, value=b"", key=None, headers=None, topic=CANDIDATE.name, timestamp=0):
    if event is not None:
        value, key = event.model_dump_json().encode(), event.key.encode()
        if headers is None:
            headers = tuple(headers_for(CANDIDATE, event_id=str(event.boundary_id), source="test", subject=event.key, time=NOW))
    return Record(topic=topic, partition=partition, offset=offset, key=key, headers=tuple(headers or ()), value=value, timestamp=timestamp)


def received(n=1, **kwargs):
    event = candidate(n, **kwargs)
    return Received(event=event, record=record(event, offset=n))


def outgoing(event, body=b"{}"):
    return Outgoing(topic=EVIDENCE, key=event.key, body=body, event_id=str(event.boundary_id), time=NOW)


class FakePublisher:
    """Keeps what it is given; fails while `error` is set, for the keys in `only` alone if any."""

    def __init__(self):
        self.sent = []
        self.raw = []
        self.error = None
        self.only = set()

    async def send(self, items):
        for item in items:
            check_size(item.topic, item.body, item.key)
        if self.error is not None:
            raise self.error
        self.sent += items

    async def send_each(self, items):
        results = []
        for item in items:
            failing = self.error is not None and (not self.only or item.key in self.only)
            results.append(self.error if failing else None)
            if not failing:
                self.sent.append(item)
        return results

    async def send_raw(self, records):
        results = []
        for one in records:
            results.append(self.error)
            if self.error is None:
                self.raw.append(one)
        return results


class ScriptedHandler:
    """Fails as told, else publishes one event for each."""

    topic = CANDIDATE
    model = Candidate

    def __init__(self):
        self.calls = []
        self.fail = lambda batch: None  # returns an exception or None
        self.answer = lambda one: outgoing(one.event)

    def identity(self, event):
        return event.fleet, event.boundary_id

    async def handle(self, batch):
        self.calls.append([one.event.index for one in batch])
        error = self.fail(batch)
        if error is not None:
            raise error
        return Handled(outgoing=[self.answer(one) for one in batch])


class World:
    """A worker with everything around it."""

    def __init__(self, *, patience=HASTE, limit=None, classify=classify, **settings):
        self.telemetry = Telemetry.plain("retriever")
        self.settings = KafkaSettings(**settings)
        self.publisher = FakePublisher()
        self.store = MemoryDeadLetters()
        self.handler = ScriptedHandler()
        self.now = 0.0
        self.around = Surroundings(
            settings=self.settings,
            publisher=self.publisher,
            dead_letters=DeadLetters(self.store, self.publisher, self.settings, self.telemetry, lambda: NOW),
            claims=None,
            telemetry=self.telemetry,
            progress=Progress(lambda: self.now, busy_limit_s=100),
            clock=lambda: self.now,
            wall=lambda: self.now,
            rng=random.Random(0),
            stopping=asyncio.Event(),
            classify=classify,
            patience=patience,
            limit=limit or Limit(),
        )
        self.worker = Worker(self.handler, self.around)

    def with_(self, **changes):
        self.around = replace(self.around, **changes)
        self.worker = Worker(self.handler, self.around)
        return self

    def metric(self, name, **labels):
        return self.telemetry.metrics.value(name, service="retriever", topic=CANDIDATE.name, **labels)
