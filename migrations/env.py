"""Alembic's environment: one connection, one transaction, one migration at a time."""

from alembic import context
from sqlalchemy import Connection, text

#: Advisory lock of migrations; arbitrary, and Winnow's own. It belongs to one database, as the schema does.
MIGRATION_LOCK = 7166113000


def run(connection: Connection) -> None:
    """Run in one transaction under the lock: the version is read after it is held, so a second process finds nothing left to do."""
    context.configure(connection=connection, transaction_per_migration=False)
    with context.begin_transaction():
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
        context.run_migrations()


run(context.config.attributes["connection"])
