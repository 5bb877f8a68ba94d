"""Tables of exact bytes and their handles. Comments and storage options stand in `migrations/`."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import BYTEA, UUID

from winnow.storage.tables.base import INSTANT, metadata

originals = Table(
    "originals",
    metadata,
    Column("fleet", Text),
    Column("sha256", Text),
    Column("data", BYTEA, nullable=False),
    Column("encoding", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created_at", INSTANT, nullable=False),
    Column("touched_at", INSTANT, nullable=False),
    PrimaryKeyConstraint("fleet", "sha256", name="originals_pkey"),
)
handles = Table(
    "handles",
    metadata,
    Column("handle", Text),
    Column("fleet", Text, nullable=False),
    Column("sha256", Text),
    Column("kind", Text, nullable=False),
    Column("boundary_id", UUID),
    Column("created_at", INSTANT, nullable=False),
    Column("expires_at", INSTANT),
    Column("erased_at", INSTANT),
    PrimaryKeyConstraint("handle", name="handles_pkey"),
    Index("handles_boundary", "fleet", "boundary_id"),
    Index("handles_original", "fleet", "sha256"),
)
recoveries = Table(
    "recoveries",
    metadata,
    Column("id", BigInteger, Identity(always=True)),
    Column("fleet", Text, nullable=False),
    Column("handle", Text, nullable=False),
    Column("kind", Text),
    Column("boundary_id", UUID),
    Column("run", Text),
    Column("via", Text, nullable=False),
    Column("event_id", UUID),
    Column("at", INSTANT, nullable=False),
    Column("part", Text),
    Column("bytes", BigInteger),
    Column("given_key", Text),
    Column("source", Boolean),
    PrimaryKeyConstraint("id", name="recoveries_pkey"),
    UniqueConstraint("fleet", "event_id", name="recoveries_event"),
    Index("recoveries_boundary", "fleet", "boundary_id"),
    Index("recoveries_given", "fleet", "given_key", postgresql_where=text("given_key IS NOT NULL")),
)
pinned_entries = Table(
    "pinned_entries",
    metadata,
    Column("fleet", Text),
    Column("run", Text),
    Column("text_key", Text),
    Column("boundary_id", UUID, nullable=False),
    Column("n", Integer, nullable=False),
    Column("pinned_at", INSTANT, nullable=False),
    PrimaryKeyConstraint("fleet", "run", "text_key", name="pinned_entries_pkey"),
    ForeignKeyConstraint(["fleet"], ["fleets.fleet"], name="pinned_entries_fleets_fkey"),
)
canary_donors = Table(
    "canary_donors",
    metadata,
    Column("fleet", Text),
    Column("run", Text),
    Column("boundary_id", UUID),
    Column("boundary_at", INSTANT, nullable=False),
    PrimaryKeyConstraint("fleet", "run", "boundary_id", name="canary_donors_pkey"),
    ForeignKeyConstraint(["fleet"], ["fleets.fleet"], name="canary_donors_fleets_fkey"),
    Index("canary_donors_boundary", "fleet", "boundary_id"),
)
