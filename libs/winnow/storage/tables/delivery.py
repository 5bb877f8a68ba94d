"""Tables of runtime events, the outbox and dead letters. Comments and storage options stand in `migrations/`."""

from sqlalchemy import BigInteger, Boolean, Column, Identity, Index, Integer, PrimaryKeyConstraint, Table, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import BYTEA, JSONB, UUID

from winnow.storage.tables.base import INSTANT, metadata

runtime_events = Table(
    "runtime_events",
    metadata,
    Column("fleet", Text),
    Column("event_id", UUID),
    Column("run", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at", INSTANT, nullable=False),
    Column("boundary_id", UUID),
    Column("adopted", Text),
    Column("handle", Text),
    Column("because", Text),
    Column("received_at", INSTANT, nullable=False),
    Column("recovery_tool", Boolean),
    PrimaryKeyConstraint("fleet", "event_id", name="runtime_events_pkey"),
    Index("runtime_events_run", "fleet", "run", "at"),
    Index("runtime_events_boundary", "fleet", "boundary_id", "at", postgresql_where=text("boundary_id IS NOT NULL")),
)
outbox = Table(
    "outbox",
    metadata,
    Column("id", BigInteger, Identity(always=True)),
    Column("fleet", Text, nullable=False),
    Column("run", Text),
    Column("boundary_id", UUID),
    Column("topic", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("body", BYTEA, nullable=False),
    Column("encoding", Text, nullable=False),
    Column("event_id", UUID, nullable=False),
    Column("headers", JSONB, nullable=False),
    Column("traceparent", Text),
    Column("created_at", INSTANT, nullable=False),
    Column("sent_at", INSTANT),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("last_error", Text),
    PrimaryKeyConstraint("id", name="outbox_pkey"),
    UniqueConstraint("fleet", "topic", "event_id", name="outbox_event"),
    Index("outbox_waiting", "id", postgresql_where=text("sent_at IS NULL")),
    Index("outbox_boundary", "fleet", "boundary_id"),
)
locks = Table("locks", metadata, Column("name", Text), PrimaryKeyConstraint("name", name="locks_pkey"))
dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", BigInteger, Identity(always=True)),
    Column("topic", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("key", BYTEA),
    Column("value", BYTEA),
    Column("encoding", Text, nullable=False),
    Column("headers", JSONB, nullable=False),
    Column("reason", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("service", Text, nullable=False),
    Column("attempts", Integer, nullable=False, server_default=text("1")),
    Column("fleet", Text),
    Column("run", Text),
    Column("record_at", INSTANT),
    Column("created_at", INSTANT, nullable=False),
    Column("replayed_at", INSTANT),
    Column("replays", Integer, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("id", name="dead_letters_pkey"),
    UniqueConstraint("topic", "partition", "offset", "record_at", name="dead_letters_record", postgresql_nulls_not_distinct=True),
    Index("dead_letters_fleet", "fleet", "run"),
)
