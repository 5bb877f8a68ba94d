"""Families and epochs of streams, runs that the monitor watches and closes, webhooks."""

from collections.abc import Sequence
from pathlib import Path

from alembic import op
from sqlalchemy.util import await_only

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

SQL = Path(__file__).parent.parent / "sql" / "0003"


def run(file: str) -> None:
    """Run a script of many statements in one simple query, as revision 0001 does."""
    await_only(op.get_bind().connection.driver_connection.execute((SQL / file).read_text(encoding="utf-8")))


def upgrade() -> None:
    """Make the tables and columns, then the views and who may see what."""
    run("10_tables.sql")
    run("20_views.sql")


def downgrade() -> None:
    """Remove them."""
    run("down.sql")
