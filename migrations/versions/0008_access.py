"""Roles of keys, their expiry and replacement, and an audit trail that no role of Winnow can rewrite."""

from collections.abc import Sequence
from pathlib import Path

from alembic import op
from sqlalchemy.util import await_only

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

SQL = Path(__file__).parent.parent / "sql" / "0008"


def run(file: str) -> None:
    """Run a script of many statements in one simple query, as revision 0001 does."""
    await_only(op.get_bind().connection.driver_connection.execute((SQL / file).read_text(encoding="utf-8")))


def upgrade() -> None:
    """Add the columns, a view of what was done, and take away what was granted too much."""
    run("10_keys.sql")
    run("20_audit.sql")


def downgrade() -> None:
    """Remove them."""
    run("down.sql")
