"""The one place where brokers are made. The library's own defaults lose messages (at most once, from `latest`); none of them is left."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from faststream.kafka import KafkaBroker
from faststream.middlewares import AckPolicy

from winnow.contracts import limits
from winnow.messaging import tolerance
from winnow.messaging.settings import KafkaSettings
from winnow.telemetry import Telemetry

#: Bytes. The library's 16 KiB would send every candidate in a request of its own.
PRODUCER_BATCH_BYTES = 256 * limits.KIB
#: Milliseconds.
FETCHER_LOOK_MS = 1_000
#: Seconds that a broker may take to give out a producer id. The embedded broker refuses at once; a real one takes milliseconds.
PROBE_S = 10.0


def producer_options(settings: KafkaSettings, *, service: str, idempotent: bool) -> dict[str, Any]:
    """Options of `AIOKafkaProducer` as all of Winnow produces."""
    return settings.client_options() | {
        "client_id": f"winnow-{service}",
        "acks": "all",
        "enable_idempotence": idempotent,
        "compression_type": None if settings.compression == "none" else settings.compression,
        "max_batch_size": PRODUCER_BATCH_BYTES,
        "linger_ms": settings.linger_ms,
        # aiokafka checks *uncompressed* bytes against it. The limit of each topic is checked by `Publisher`, before the commit.
        "max_request_size": limits.DEAD_LETTER_RECORD_BYTES,
    }


def consumer_options(settings: KafkaSettings, *, max_record_bytes: int) -> dict[str, Any]:
    """Options of a group's consumer of a topic whose records have up to `max_record_bytes`."""
    return {
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",
        # A record above it can be skipped for good (aiokafka#1173).
        "max_partition_fetch_bytes": max_record_bytes,
        "fetch_max_wait_ms": settings.busy_wait_ms,
        # The fetcher is woken by all that concerns it; this only says how often it looks without a reason (stock: five times a second).
        "consumer_timeout_ms": FETCHER_LOOK_MS,
        "fetch_max_bytes": max(settings.fetch_max_bytes, max_record_bytes),
        "session_timeout_ms": settings.session_timeout_ms,
        "heartbeat_interval_ms": settings.heartbeat_interval_ms,
        "max_poll_interval_ms": settings.max_poll_interval_ms,
        # The broker answers a join when all have joined, or after this. Longer than a request may take, the client would give the join up
        # and join again as somebody else, whom the broker then waits for.
        "rebalance_timeout_ms": min(settings.session_timeout_ms, settings.request_timeout_ms * 3 // 4),
        "group_instance_id": settings.group_instance,
    }


async def probe_idempotence(settings: KafkaSettings, telemetry: Telemetry) -> bool:
    """Whether producers may be idempotent: as set, or as the broker answers. Raise `KafkaError` where no broker answers."""
    if settings.idempotence != "auto":
        return settings.idempotence == "on"
    reachable = AIOKafkaProducer(**producer_options(settings, service=telemetry.service, idempotent=False))
    await reachable.start()
    await reachable.stop()
    probe = AIOKafkaProducer(**producer_options(settings, service=telemetry.service, idempotent=True))
    try:
        with _quiet_producer():
            await asyncio.wait_for(probe.start(), PROBE_S)
    except (KafkaError, TimeoutError) as exc:
        telemetry.log.info("broker_probe", idempotent=False, error=exc)
        return False
    else:
        telemetry.log.info("broker_probe", idempotent=True)
        return True
    finally:
        await probe.stop()


def make_broker(settings: KafkaSettings, *, service: str, telemetry: Telemetry, idempotent: bool) -> KafkaBroker:
    """A broker with every default of ours; not connected yet. Call it in the running event loop, shortly before `start`."""
    tolerance.install()
    options = producer_options(settings, service=service, idempotent=idempotent)
    ssl_context = options.pop("ssl_context", None)
    security_protocol = options.pop("security_protocol")
    sasl = {name: options.pop(name) for name in [n for n in options if n.startswith("sasl_")]}
    broker = KafkaBroker(
        **options,
        ack_policy=AckPolicy.NACK_ON_ERROR,
        allow_auto_create_topics=False,  # it would create topics with one partition
        apply_types=False,  # the body is validated in our recipe; dependency injection costs a thread hop a call
        graceful_timeout=settings.graceful_timeout_s,
        logger=_library_logger(telemetry),  # without one, errors of parser and handler vanish
    )
    # FastStream takes security as an object of its own that cannot name every mechanism; the client takes plain options.
    broker._connection_kwargs |= {"security_protocol": security_protocol, "ssl_context": ssl_context, **sasl}  # noqa: SLF001  as said
    return broker


def _library_logger(telemetry: Telemetry) -> logging.Logger:
    """FastStream's own messages: its errors, not two lines for each batch nor the warning that topics are not made automatically."""
    logger = telemetry.log.stdlib.getChild("faststream")
    logger.setLevel(logging.ERROR)
    return logger


@contextlib.contextmanager
def _quiet_producer() -> Iterator[None]:
    """A broker that refuses a producer id is an answer, not an error; aiokafka logs it as one."""
    logger = logging.getLogger("aiokafka.producer.sender")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def producer_of(broker: KafkaBroker) -> AIOKafkaProducer:
    """The producer of a started broker: FastStream's own `publish` takes no binary header and no repeated one.

    Raises `faststream.exceptions.IncorrectState` before `start`. The attribute is private, the version is pinned, a test watches it.
    """
    producer: AIOKafkaProducer = broker.config.producer._producer.producer  # type: ignore[attr-defined]  # noqa: SLF001  as said
    return producer


def consumer_of(subscriber: Any) -> AIOKafkaConsumer | None:  # noqa: ANN401  FastStream's subscriber classes share no public base
    """The consumer of a started subscriber; None before and after."""
    consumer: AIOKafkaConsumer | None = subscriber.consumer
    return consumer
