"""`winnow db`: the schema of the database, and questions to it."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from winnow.cli.connection import database_url, on_database, unreachable
from winnow.cli.terminal import Terminal, cell, table
from winnow.contracts.errors import Permanent

if TYPE_CHECKING:
    from winnow.storage.database import Database

#: Rows that a query shows unless told otherwise.
ROWS = 1_000


class QueryRefused(Permanent):
    """The database refused the query."""


def group() -> typer.Typer:
    """The commands of `winnow db`."""
    made = typer.Typer(help="The schema of the database, and questions to it.", no_args_is_help=True)
    made.command("upgrade")(upgrade)
    made.command("current")(current)
    made.command("query", context_settings={"ignore_unknown_options": True})(query)  # a statement may begin with a comment
    return made


def upgrade(
    revision: Annotated[str, typer.Argument(help="The revision to end at.")] = "head",
) -> None:
    """Bring the schema to the newest revision. Several processes may do so at once; one does it, the others wait."""
    from winnow.storage import migrate

    url = database_url()
    with unreachable():
        before = migrate.current(url)
        migrate.upgrade(url, revision)
        after = migrate.current(url)
    Terminal().show(f"the schema is at {after}" + (" already" if before == after else f", it was at {before or 'nothing'}"))


def current(*, as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False) -> None:
    """Show the revision of the schema and what an upgrade would apply."""
    from winnow.storage import migrate

    url = database_url()
    with unreachable():
        revision, pending = migrate.current(url), migrate.pending(url)
    terminal = Terminal()
    if as_json:
        terminal.json({"revision": revision, "pending": pending})
    else:
        terminal.show(
            f"the schema is at {revision or 'nothing'}; "
            + (f"an upgrade applies {', '.join(pending)}" if pending else "nothing is pending")
        )


def query(
    sql: Annotated[str, typer.Argument(help="One statement; it runs in a transaction that can only read.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a row.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Rows that are shown at most.")] = ROWS,
) -> None:
    """Ask the database, for example: winnow db query 'SELECT * FROM unsupported_by_section'."""
    terminal = Terminal()
    columns, rows = on_database(lambda database: select(database, sql, limit))
    if as_json:
        for row in rows:
            sys.stdout.write(json.dumps(dict(zip(columns, row, strict=True)), default=str) + "\n")
        return
    made = table(*columns)
    for row in rows[:limit]:
        made.add_row(*(cell(value, most=400) for value in row))
    terminal.show(made)


async def select(database: "Database", sql: str, limit: int = ROWS) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and at most `limit` rows of `sql`, in a read-only transaction. Raise `QueryRefused`."""
    from sqlalchemy import text
    from sqlalchemy.exc import DBAPIError, ResourceClosedError

    async with database.transaction() as tx:
        await tx.execute(text("SET TRANSACTION READ ONLY"))
        try:
            # The driver's own statement: no colon in it is taken for a parameter.
            result = await tx.exec_driver_sql(sql)
            return list(result.keys()), [tuple(row) for row in result.fetchmany(limit)]
        except ResourceClosedError:
            return [], []
        except DBAPIError as exc:
            said = str(exc.orig).splitlines()[0]
            msg = f"the database refused the query: {said.partition('>: ')[2] or said}"
            raise QueryRefused(msg) from None
