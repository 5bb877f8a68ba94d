"""What was given back and what came of it: parts of originals, pins that last for a run, and the donors of canaries."""

from collections.abc import Sequence
from pathlib import Path

from alembic import op
from sqlalchemy.util import await_only

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

SQL = Path(__file__).parent.parent / "sql" / "0007"


def run(file: str) -> None:
    """Run a script of many statements in one simple query, as revision 0001 does."""
    await_only(op.get_bind().connection.driver_connection.execute((SQL / file).read_text(encoding="utf-8")))


def upgrade() -> None:
    """Add the columns, two tables and a view of recoveries."""
    run("10_recovery.sql")


def downgrade() -> None:
    """Remove them."""
    run("down.sql")
