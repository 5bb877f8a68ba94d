"""Tables of fleets, operating points, keys, readers and the audit log. Comments and storage options stand in `migrations/`."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Identity,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from winnow.storage.tables.base import INSTANT, metadata

fleets = Table(
    "fleets",
    metadata,
    Column("fleet", Text),
    Column("operating_point", BigInteger),
    Column("held_since", INSTANT),
    Column("held_because", Text),
    Column("held_by", Text),
    Column("hold_alert", UUID),
    Column("created_at", INSTANT, nullable=False),
    PrimaryKeyConstraint("fleet", name="fleets_pkey"),
)
operating_points = Table(
    "operating_points",
    metadata,
    Column("id", BigInteger, Identity(always=True)),
    Column("fleet", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("tau", Double, nullable=False),
    Column("judge", Text, nullable=False),
    Column("require_certificate", Boolean, nullable=False),
    Column("hold_if_monitor_stale", Boolean, nullable=False),
    Column("prune_stale", Boolean, nullable=False, server_default=text("false")),
    Column("created_at", INSTANT, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("because", Text),
    PrimaryKeyConstraint("id", name="operating_points_pkey"),
    ForeignKeyConstraint(["fleet"], ["fleets.fleet"], name="operating_points_fleets_fkey"),
    CheckConstraint("tau >= 0 AND tau <= 1", name="operating_points_tau"),
    Index("operating_points_fleet", "fleet", "id"),
)
api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", UUID),
    Column("fleet", Text, nullable=False),
    Column("secret_sha256", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", INSTANT, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("revoked_at", INSTANT),
    Column("last_used_at", INSTANT),
    PrimaryKeyConstraint("key_id", name="api_keys_pkey"),
    UniqueConstraint("secret_sha256", name="api_keys_secret"),
    ForeignKeyConstraint(["fleet"], ["fleets.fleet"], name="api_keys_fleets_fkey"),
)
reader_roles = Table(
    "reader_roles",
    metadata,
    Column("role", Text),
    Column("fleet", Text, nullable=False),
    Column("created_at", INSTANT, nullable=False),
    Column("created_by", Text, nullable=False),
    PrimaryKeyConstraint("role", name="reader_roles_pkey"),
    ForeignKeyConstraint(["fleet"], ["fleets.fleet"], name="reader_roles_fleets_fkey"),
)
audit_log = Table(
    "audit_log",
    metadata,
    Column("id", BigInteger, Identity(always=True)),
    Column("at", INSTANT, nullable=False),
    Column("fleet", Text),
    Column("action", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("because", Text),
    Column("details", JSONB, nullable=False, server_default=text("'{}'")),
    PrimaryKeyConstraint("id", name="audit_log_pkey"),
    Index("audit_log_fleet", "fleet", "at"),
)
