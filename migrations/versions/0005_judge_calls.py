"""How a boundary was cut to fit a remote judge, beside what its calls cost."""

from collections.abc import Sequence
from pathlib import Path

from alembic import op
from sqlalchemy.util import await_only

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

SQL = Path(__file__).parent.parent / "sql" / "0005"


def run(file: str) -> None:
    """Run a script of many statements in one simple query, as revision 0001 does."""
    await_only(op.get_bind().connection.driver_connection.execute((SQL / file).read_text(encoding="utf-8")))


def upgrade() -> None:
    """Add the columns."""
    run("10_judge_calls.sql")


def downgrade() -> None:
    """Drop them."""
    run("down.sql")
