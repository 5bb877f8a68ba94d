"""Fleets, boundaries and their stages, originals, delivery, assurance, views, roles and policies."""

from collections.abc import Sequence
from pathlib import Path

from alembic import op
from sqlalchemy.util import await_only

revision: str = "0001"
down_revision: str | None = None
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

SQL = Path(__file__).parent.parent / "sql" / "0001"


def run(script: str) -> None:
    """Run a script of many statements; the driver prepares single statements only, so it gets the whole text in one simple query."""
    await_only(op.get_bind().connection.driver_connection.execute(script))


def upgrade() -> None:
    """Create everything, in the order of the files."""
    for file in sorted(SQL.glob("[0-9]*.sql")):
        run(file.read_text(encoding="utf-8"))
    run("COMMENT ON TABLE alembic_version IS 'Revision of the schema.'")
    run("COMMENT ON COLUMN alembic_version.version_num IS 'Revision, as the files under migrations name it.'")
    run("SELECT winnow_ensure_partitions((now() AT TIME ZONE 'UTC')::date)")


def downgrade() -> None:
    """Remove everything, and those roles that nothing else uses."""
    run((SQL / "down.sql").read_text(encoding="utf-8"))
