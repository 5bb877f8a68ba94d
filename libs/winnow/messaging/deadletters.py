"""Dead letters: what could not be handled, with its bytes and headers unchanged, in the table first and then on the topic."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from opentelemetry.context import Context

from winnow.contracts.errors import Permanent, WinnowError
from winnow.contracts.rights import NotAllowed
from winnow.contracts.topics import DEAD_LETTER
from winnow.contracts.vocabulary import Reason
from winnow.messaging.faults import Classify, Fault, classify
from winnow.messaging.ports import DeadLetter, DeadLetterStore
from winnow.messaging.publisher import Publisher, RawRecord, record_bytes
from winnow.messaging.records import Dead, Record
from winnow.messaging.settings import KafkaSettings
from winnow.telemetry import Telemetry
from winnow.telemetry.redaction import mask_headers, mask_text, printable
from winnow.telemetry.traces import within

#: Headers that are put behind the original ones, in this order. The originals may hold the same names (a hostile producer, a letter that
#: was replayed by hand), so it is the position at the end that tells ours from theirs.
NAMES = (
    "winnow_dl_topic",
    "winnow_dl_partition",
    "winnow_dl_offset",
    "winnow_dl_reason",
    "winnow_dl_error",
    "winnow_dl_service",
    "winnow_dl_attempts",
    "winnow_dl_at",
)
#: Milliseconds: the end of the year 9999. A producer may write any 64-bit number, and no calendar goes on for ever.
LAST_TIMESTAMP_MS = 253_402_300_799_000
#: Characters of an error text.
MAX_ERROR_CHARS = 500

Headers = tuple[tuple[str, bytes], ...]


class NotReplayable(Permanent):
    """A record with neither key nor body cannot be published again; Kafka needs one of the two."""


class ReplayFailed(WinnowError):
    """The broker did not confirm the record; try again when it is healthy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What the headers of a record on the dead-letter topic say."""

    topic: str
    partition: int
    offset: int
    reason: str
    error: str
    service: str
    attempts: int
    at: datetime


def fleet_and_run(key: bytes | None) -> tuple[str | None, str | None]:
    """Tenant and run by the record key `fleet/run`; None for what it does not say. The key is the producer's word."""
    try:
        text = (key or b"").decode()
    except UnicodeDecodeError:
        return None, None
    fleet, slash, run = text.partition("/")
    return (fleet[:64] or None, run[:200] or None) if slash else (None, None)


def headers_of(letter: DeadLetter) -> Headers:
    """The original headers, unchanged, and ours behind them."""
    values = (
        letter.topic,
        str(letter.partition),
        str(letter.offset),
        letter.reason,
        letter.error,
        letter.service,
        str(letter.attempts),
        letter.at.astimezone(UTC).isoformat(),
    )
    return (*letter.headers, *((name, value.encode("utf-8", "replace")) for name, value in zip(NAMES, values, strict=True)))


def split_headers(headers: Sequence[tuple[str, bytes]]) -> tuple[Headers, Why | None]:
    """Original headers and ours; no `Why` where the last ones are not ours."""
    tail = headers[-len(NAMES) :]
    if tuple(name for name, _ in tail) != NAMES:
        return tuple(headers), None
    said = {name: value.decode("utf-8", "replace") for name, value in tail}
    try:
        why = Why(
            topic=said["winnow_dl_topic"],
            partition=int(said["winnow_dl_partition"]),
            offset=int(said["winnow_dl_offset"]),
            reason=said["winnow_dl_reason"],
            error=said["winnow_dl_error"],
            service=said["winnow_dl_service"],
            attempts=int(said["winnow_dl_attempts"]),
            at=datetime.fromisoformat(said["winnow_dl_at"]),
        )
    except ValueError:
        return tuple(headers), None
    return tuple(headers[: -len(NAMES)]), why


def letter_of(dead: Dead, *, service: str, attempts: int, at: datetime) -> DeadLetter:
    """The row of a dead record: its bytes as they were, its headers and the error text (one printable line) without secrets."""
    record = dead.record
    fleet, run = fleet_and_run(record.key)
    return DeadLetter(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        headers=mask_headers(record.headers),
        value=record.value,
        timestamp=min(max(record.timestamp, 0), LAST_TIMESTAMP_MS),
        reason=str(dead.reason) if dead.reason in set(Reason) else Reason.INVALID,
        error=mask_text(" ".join(printable(dead.error, MAX_ERROR_CHARS).split())),
        service=service,
        attempts=attempts,
        at=at,
        fleet=fleet,
        run=run,
    )


def original_of(letter: DeadLetter) -> RawRecord:
    """The record to publish again: original topic, key, headers and bytes. Raise `NotReplayable`.

    A record without a key goes back to its partition; one with a key finds it by the key, even where the topic has more partitions now.
    """
    if letter.key is None and letter.value is None:
        raise NotReplayable
    partition = letter.partition if letter.key is None else None
    return RawRecord(topic=letter.topic, key=letter.key, value=letter.value, headers=letter.headers, partition=partition)


def letter_from(record: Record) -> DeadLetter | None:
    """The letter that a record of the dead-letter topic stands for; None where it is none of ours."""
    headers, why = split_headers(record.headers)
    if why is None:
        return None
    fleet, run = fleet_and_run(record.key)
    return DeadLetter(
        topic=why.topic,
        partition=why.partition,
        offset=why.offset,
        key=record.key,
        headers=headers,
        value=record.value,
        timestamp=record.timestamp,
        reason=why.reason,
        error=why.error,
        service=why.service,
        attempts=why.attempts,
        at=why.at,
        fleet=fleet,
        run=run,
    )


class DeadLetters:
    """Where a service puts what it cannot handle, and how it is played again."""

    def __init__(
        self,
        store: DeadLetterStore,
        publisher: Publisher,
        settings: KafkaSettings,
        telemetry: Telemetry,
        now: Callable[[], datetime],
        classify: Classify = classify,
    ) -> None:
        self._store = store
        self._publisher = publisher
        self._settings = settings
        self._telemetry = telemetry
        self._now = now
        self._classify = classify

    async def bury(self, dead: Sequence[Dead], *, attempts: int = 1, context_of: Callable[[Record], Context] | None = None) -> None:
        """Store rows, then publish them to the dead-letter topic. `context_of` gives the trace of a record; left out: its producer's.

        Returns when the rows are stored: what the topic cannot take (too large, broker refuses) stands in the table only. A redelivery
        stores nothing new and publishes again, for nobody knows whether the first time arrived. Raises what the store raises.
        """
        if not dead:
            return
        at = self._now()
        letters = [letter_of(d, service=self._telemetry.service, attempts=attempts, at=at) for d in dead]
        new = set(await self._add(letters))
        contexts = [(context_of or self._sent_in)(d.record) for d in dead]
        for letter, context in zip(letters, contexts, strict=True):
            position = (letter.topic, letter.partition, letter.offset)
            if position in new:
                topic = letter.topic.removeprefix(self._settings.topic_prefix)
                self._telemetry.metrics.count(
                    "winnow_dead_letters_total", service=self._telemetry.service, topic=topic, reason=str(letter.reason)
                )
                with within(context):
                    self._telemetry.log.warning(
                        "record_dead",
                        topic=topic,
                        partition=letter.partition,
                        offset=letter.offset,
                        reason=letter.reason,
                        error=letter.error,
                    )
        await self._announce(letters, contexts)

    def _sent_in(self, record: Record) -> Context:
        """The trace that a record was sent in."""
        return self._telemetry.traces.extract(record.headers)

    async def _add(self, letters: Sequence[DeadLetter]) -> Sequence[tuple[str, int, int]]:
        """Store rows; where the store refuses one for what is in it, one by one and in the end without its headers.

        What cannot be stored at all would stop its partition for ever, so the store's last word is raised.
        """
        try:
            return await self._store.add(letters)
        except Exception as exc:
            if self._classify(exc) is Fault.TRANSIENT:
                raise
        new: list[tuple[str, int, int]] = []
        for letter in letters:
            try:
                new += await self._store.add([letter])
            except Exception as exc:
                if self._classify(exc) is Fault.TRANSIENT:
                    raise
                error = f"{letter.error} (the headers could not be stored)"
                new += await self._store.add([replace(letter, headers=(), error=error)])
        return new

    async def replay(self, letter: DeadLetter) -> None:
        """Publish the original record to its topic again. Raise `NotReplayable` or `ReplayFailed`; marking the row is the caller's."""
        [error] = await self._publisher.send_raw([original_of(letter)])
        if error is not None:
            msg = f"{ReplayFailed.__doc__} ({type(error).__name__})"
            raise ReplayFailed(msg) from error
        topic = letter.topic.removeprefix(self._settings.topic_prefix)
        self._telemetry.log.info("dead_letter_replayed", topic=topic, partition=letter.partition, offset=letter.offset)

    async def _announce(self, letters: Sequence[DeadLetter], contexts: Sequence[Context]) -> None:
        """Tell the topic; a failure is counted and logged, and the row stays."""
        name = self._settings.topic_name(DEAD_LETTER.name)
        records: list[tuple[DeadLetter, Context, RawRecord]] = []
        for letter, context in zip(letters, contexts, strict=True):
            headers = headers_of(letter)
            # A tombstone without a key has neither key nor body; Kafka needs one, and the table has the record as it was.
            value = b"" if letter.key is None and letter.value is None else letter.value
            if record_bytes(letter.key, value, headers) > DEAD_LETTER.max_record_bytes:
                self._failed(letter, context, "the record is larger than the dead-letter topic takes")
            else:
                records.append((letter, context, RawRecord(topic=name, key=letter.key, value=value, headers=headers)))
        errors = await self._publisher.send_raw(record for *_, record in records)
        for (letter, context, _), error in zip(records, errors, strict=True):
            if error is not None:
                self._failed(letter, context, str(error) if isinstance(error, NotAllowed) else type(error).__name__)

    def _failed(self, letter: DeadLetter, context: Context, error: str) -> None:
        self._telemetry.metrics.count("winnow_dead_letter_topic_failures_total", service=self._telemetry.service)
        with within(context):
            self._telemetry.log.warning(
                "dead_letter_topic_failed",
                topic=letter.topic.removeprefix(self._settings.topic_prefix),
                partition=letter.partition,
                offset=letter.offset,
                error=error,
            )
