"""The way to Winnow over Kafka, for runtimes that all belong to one tenant."""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, TopicAuthorizationFailedError

from winnow.client.api import BoundaryPage, BoundaryView, PrunedPage, RecoveryRequest, RunPage, SearchPage
from winnow.client.feed import CHECK_TIMEOUT_S, CONNECT_S, FETCH_WAIT_MS, Feed, Waiting, partition_of
from winnow.client.http import HttpTransport, claimed
from winnow.client.isolation import discarded, isolated
from winnow.client.recovery import Recovered
from winnow.client.result import Because, Unheard
from winnow.client.transport import Report
from winnow.contracts import ids, limits
from winnow.contracts.deadline import Deadline
from winnow.contracts.envelope import Invalid, decode, decode_claim, encode, headers_for
from winnow.contracts.errors import Permanent, Retryable, TooLarge
from winnow.contracts.events import Candidate, Committed, RuntimeEvent, sha256
from winnow.contracts.rights import NotAllowed, Operation, Resource, Right
from winnow.contracts.topics import CANDIDATE, COMMITTED, OBSERVATION, RUNTIME, Topic

log = logging.getLogger("winnow.client")

#: Seconds between two tries to reach a broker.
RECONNECT_S = 0.3
#: Failed sends in a row after which the producer is thrown away: its sender task can die for good.
SUSPECT_FAILURES = 3
#: Part of the remaining time after which a candidate without an answer is published once more: a lost answer then still comes in time.
RESUBMIT_AFTER = 0.5


class KafkaTransport:
    """Talks to Winnow's topics directly. Originals, and candidates above 8 MiB, need a gateway besides."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        topic_prefix: str = "",
        gateway_url: str | None = None,
        api_key: str | None = None,
        source: str = "winnow-client",
        idempotence: bool = False,
        compression: str | None = "zstd",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """`bootstrap_servers` is `host:port[,host:port...]`; `source` names this runtime in event headers.

        `options` go to both aiokafka clients: `security_protocol`, `ssl_context`, `sasl_mechanism` and the like. Off by default,
        `idempotence` is not needed: a repetition of a boundary or report is stored once by its id, and the embedded broker lacks it.
        """
        self._servers = [server.strip() for server in bootstrap_servers.split(",") if server.strip()]
        self._prefix = topic_prefix
        self._gateway = HttpTransport(gateway_url, api_key or "") if gateway_url else None
        self._source = source
        self._idempotence = idempotence
        self._compression = compression
        self._options = dict(options or {})
        if str(self._options.get("security_protocol", "")).endswith("SSL"):
            self._options.setdefault("ssl_context", ssl.create_default_context())
        self._producer: AIOKafkaProducer | None = None
        self._connecting = asyncio.Lock()
        self._failures = 0
        self._feed: Feed | None = None
        self._started = False

    def __repr__(self) -> str:
        """Where it goes, without secrets."""
        return f"<KafkaTransport({','.join(self._servers)}, prefix={self._prefix!r}, feed={self._feed!r})>"

    async def start(self) -> None:
        """Make ready; connects with the first call, so that an absent broker delays nobody's start."""
        self._feed = Feed(self._prefix + COMMITTED.name, self._consumer, hidden=self._hides_committed, user=self._user)
        self._started = True
        if self._gateway is not None:
            await self._gateway.start()

    async def close(self) -> None:
        """Close producer, consumer and gateway."""
        self._started = False
        if self._feed is not None:
            await self._feed.close()
        producer, self._producer = self._producer, None
        if producer is not None:
            # stop() waits for unsent batches, for ever where the broker is gone (aiokafka#659)
            await discarded(producer.stop(), 5.0)
        if self._gateway is not None:
            await self._gateway.close()

    @property
    def _user(self) -> str | None:
        """Who signs in, for what a refusal says."""
        said = self._options.get("sasl_plain_username")
        return None if said is None else str(said)

    async def ask(self, candidate: Candidate, request_sha256: str, deadline: Deadline, traceparent: str | None) -> Committed:
        """Position the reader, publish, wait for the answer; publish once more where an answer may have been lost."""
        feed = self._feed
        if feed is None or not self._started:
            raise Unheard(Because.CLOSED)
        published = False
        try:
            async with asyncio.timeout(deadline.remaining()):
                key = candidate.key
                body = await self._body(candidate, deadline)
                partition = partition_of(key, await self._partitions(COMMITTED))
                event_id = str(ids.event_id(candidate.fleet, candidate.boundary_id, CANDIDATE.event_type))
                async with feed.wait_for(candidate, request_sha256, partition) as waiting:
                    while True:
                        waiting.doubt.clear()
                        await self._publish_patiently(CANDIDATE, key, body, event_id, traceparent)
                        limit = None if published else deadline.remaining() * RESUBMIT_AFTER
                        published = True
                        answer = await self._answer(waiting, limit)
                        if answer is not None:
                            return await self._resolved(answer, candidate, deadline)
        except TimeoutError:
            raise Unheard(Because.DEADLINE if published and feed.connected else Because.UNREACHABLE) from None
        except TooLarge as exc:
            raise Unheard(Because.TOO_LARGE) from exc
        except NotAllowed as exc:  # waiting until the deadline would cost the agent its time for nothing
            log.error("refused", extra={"error": str(exc)})  # noqa: TRY400  the text says what to do
            raise Unheard(Because.UNAUTHORISED, str(exc)) from exc

    async def report(self, event: Report) -> None:
        """Publish an event."""
        topic = RUNTIME if isinstance(event, RuntimeEvent) else OBSERVATION
        try:
            body = encode(topic, event)
        except TooLarge as exc:
            raise Permanent(str(exc), reason=exc.reason) from exc
        await self._publish(topic, event.key, body, str(event.event_id), None)

    async def original(self, handle: str, deadline: Deadline) -> bytes:
        """The exact bytes of an original, through the gateway."""
        return await self._through().original(handle, deadline)

    async def boundary(self, boundary_id: UUID, deadline: Deadline) -> BoundaryView:
        """One boundary, through the gateway."""
        return await self._through().boundary(boundary_id, deadline)

    async def history(self, run: str, cursor: str | None, deadline: Deadline) -> BoundaryPage:
        """One page of a run's boundaries, through the gateway."""
        return await self._through().history(run, cursor, deadline)

    async def recover(self, asked: RecoveryRequest, deadline: Deadline) -> Recovered:
        """The exact bytes of a place, through the gateway."""
        return await self._through().recover(asked, deadline)

    async def search(self, query: str, run: str | None, cursor: str | None, limit: int, deadline: Deadline) -> SearchPage:
        """One page of places in the history, through the gateway."""
        return await self._through().search(query, run, cursor, limit, deadline)

    async def pruned(self, run: str, cursor: str | None, limit: int, deadline: Deadline) -> PrunedPage:
        """One page of what was pruned of a run, through the gateway."""
        return await self._through().pruned(run, cursor, limit, deadline)

    async def runs(self, cursor: str | None, limit: int, deadline: Deadline) -> RunPage:
        """One page of the fleet's runs, through the gateway."""
        return await self._through().runs(cursor, limit, deadline)

    def _through(self) -> HttpTransport:
        if self._gateway is None:
            raise Unheard(Because.NO_GATEWAY, "give KafkaTransport a gateway_url and an api_key: originals and history are read over HTTP")
        return self._gateway

    async def _body(self, candidate: Candidate, deadline: Deadline) -> bytes:
        """The candidate's bytes; above the topic's limit with its messages stored at the gateway."""
        try:
            return encode(CANDIDATE, candidate)
        except TooLarge:
            return encode(CANDIDATE, await claimed(candidate, self._through(), deadline))

    @staticmethod
    async def _answer(waiting: Waiting, limit: float | None) -> Committed | bytes | None:
        """The answer, or None where the candidate should be published again: `limit` seconds are over, or an answer may be lost."""
        doubt: asyncio.Future[Any] = asyncio.ensure_future(waiting.doubt.wait())
        answer: asyncio.Future[Any] = waiting.answer
        try:
            await asyncio.wait({answer, doubt}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        finally:
            doubt.cancel()
        return waiting.answer.result() if waiting.answer.done() else None

    async def _resolved(self, answer: Committed | bytes, candidate: Candidate, deadline: Deadline) -> Committed:
        """The committed event, fetched by its claim check where it was too large for the topic."""
        if isinstance(answer, Committed):
            return answer
        try:
            claim = decode_claim(answer)
            if claim.fleet != candidate.fleet:
                raise Unheard(Because.INVALID_ANSWER, "the claim check belongs to another fleet")
            content = await self._through().original(claim.handle, deadline)
            if sha256(content) != claim.sha256:
                raise Unheard(Because.HASH_MISMATCH)
            return decode(Committed, content)
        except Invalid as exc:
            raise Unheard(Because.INVALID_ANSWER, str(exc)) from exc
        except Retryable as exc:
            raise Unheard(Because.UNREACHABLE) from exc

    async def _publish_patiently(self, topic: Topic, key: str, body: bytes, event_id: str, traceparent: str | None) -> None:
        """Publish one record, as often as it takes; the caller sets the limit."""
        while True:
            try:
                return await self._publish(topic, key, body, event_id, traceparent)
            except Retryable:
                await asyncio.sleep(RECONNECT_S)

    async def _publish(self, topic: Topic, key: str, body: bytes, event_id: str, traceparent: str | None) -> None:
        """Publish one record and wait until the broker has it.

        Raise `Retryable`, `NotAllowed`, or `TooLarge` where the broker's own limit is lower.
        """
        headers = headers_for(topic, event_id=event_id, source=self._source, subject=key, time=datetime.now(UTC))
        if traceparent is not None:
            headers.append(("traceparent", traceparent.encode()))
        producer = await self._connected()
        try:
            await isolated(producer.send_and_wait(self._prefix + topic.name, body, key=key.encode(), headers=headers))
        except MessageSizeTooLargeError as exc:
            raise TooLarge from exc
        except TopicAuthorizationFailedError as exc:
            raise self._refusal(topic, Operation.WRITE) from exc
        except (KafkaError, ConnectionError) as exc:
            if self._forget(producer):
                await discarded(producer.stop(), 1.0)
            msg = f"{topic.name} cannot be written ({type(exc).__name__})"
            raise Retryable(msg) from exc
        self._failures = 0

    def _forget(self, producer: AIOKafkaProducer) -> bool:
        """Count a failed send; after several in a row let go of the producer and tell so."""
        self._failures += 1
        if self._failures < SUSPECT_FAILURES or self._producer is not producer:
            return False
        self._producer, self._failures = None, 0
        return True

    async def _partitions(self, topic: Topic) -> int:
        """How many partitions a topic has. Waits for the broker and the topic as long as the caller lets it."""
        while True:
            producer = await self._connected()
            try:
                return len(await isolated(producer.partitions_for(self._prefix + topic.name)))
            except TopicAuthorizationFailedError as exc:
                raise self._refusal(topic, Operation.READ) from exc
            except (KafkaError, ConnectionError):
                await asyncio.sleep(RECONNECT_S)

    async def _hides_committed(self) -> bool:
        """Whether a broker that answers keeps the committed topic from this client; it says so of names that it is asked for."""
        producer = self._producer
        if producer is None:
            return False
        try:
            await isolated(producer.client.force_metadata_update(), CHECK_TIMEOUT_S)
        except (KafkaError, ConnectionError, TimeoutError):
            return False
        return self._prefix + COMMITTED.name in producer.client.cluster.unauthorized_topics

    def _refusal(self, topic: Topic, operation: Operation) -> NotAllowed:
        """The broker's access rules do not let this client do it."""
        return NotAllowed([Right(resource=Resource.TOPIC, name=self._prefix + topic.name, operation=operation)], self._user)

    async def _connected(self) -> AIOKafkaProducer:
        """The producer, started with the first use. Waits for a broker as long as the caller lets it."""
        async with self._connecting:
            while self._producer is None:
                if not self._started:
                    raise Unheard(Because.CLOSED)
                producer = AIOKafkaProducer(
                    bootstrap_servers=self._servers,
                    client_id=self._source,
                    acks="all",
                    enable_idempotence=self._idempotence,
                    max_request_size=limits.CANDIDATE_RECORD_BYTES,
                    compression_type=self._compression,
                    **self._options,
                )
                try:
                    await isolated(producer.start(), CONNECT_S)
                except (KafkaError, ConnectionError, TimeoutError):
                    await discarded(producer.stop(), 5.0)
                    await asyncio.sleep(RECONNECT_S)
                except BaseException:
                    await discarded(producer.stop(), 5.0)
                    raise
                else:
                    self._producer = producer
            return self._producer

    def _consumer(self) -> AIOKafkaConsumer:
        """A consumer without group and topics; the feed assigns what it needs."""
        return AIOKafkaConsumer(
            bootstrap_servers=self._servers,
            client_id=self._source,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",  # only met when the log began anew: then all of it is new
            isolation_level="read_committed",
            fetch_max_wait_ms=FETCH_WAIT_MS,
            max_partition_fetch_bytes=2 * COMMITTED.max_record_bytes,  # a record above it would be skipped for good (aiokafka#1173)
            **self._options,
        )
