"""What summaries consist of: views by section, boundary, persistence and decision."""

from collections.abc import Sequence
from pathlib import Path

from alembic import op
from sqlalchemy.util import await_only

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

SQL = Path(__file__).parent.parent / "sql" / "0004"


def run(file: str) -> None:
    """Run a script of many statements in one simple query, as revision 0001 does."""
    await_only(op.get_bind().connection.driver_connection.execute((SQL / file).read_text(encoding="utf-8")))


def upgrade() -> None:
    """Make the views, and let readers see them."""
    run("10_views.sql")


def downgrade() -> None:
    """Remove them."""
    run("down.sql")
