"""Bringing a database to a revision of the schema."""


def upgrade(dsn: str, revision: str = "head") -> None:
    """Upgrade the database at `dsn` (any PostgreSQL URL). Processes that do so at the same time wait for each other."""
    raise NotImplementedError


def downgrade(dsn: str, revision: str) -> None:
    """Downgrade to `revision`; `base` removes everything that the migrations made."""
    raise NotImplementedError


def current(dsn: str) -> str | None:
    """The revision that the database has, or None."""
    raise NotImplementedError


def pending(dsn: str) -> list[str]:
    """The revisions that `upgrade` would apply, in order."""
    raise NotImplementedError
