"""`winnow hosts`: recorded sessions as boundaries, and the adapters that are shipped for hosts."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal, cell, table


def read(
    host: Annotated[str, typer.Argument(metavar="HOST", help="Whose sessions: claude-code, codex, openclaw, opencode, openhands, pi.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Recorded sessions; `winnow hosts list` says where they lie.")],
    *,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="Where the boundaries go, one a line; - is standard output.")
    ] = "-",
) -> None:
    """Turn recorded sessions into boundaries for `winnow judge` and `winnow submit`.

    What cannot be used is named on standard error with its file and line, the rest goes on and the exit code is 1. Half a line at the end
    of a session that is still being written, and an encrypted summary, are named too and change nothing.
    """
    from winnow.cli.target import target_of
    from winnow.client.readers import READERS, Fault

    terminal = Terminal()
    reader = READERS.get(host)
    if reader is None:
        terminal.fail(f"no reader for {host!r}; there are {', '.join(READERS)}", ExitCode.USAGE)
    bad = done = 0
    with target_of(out) as lines:
        for one in reader.sessions(files):
            if isinstance(one, Fault):
                said = f"{one.place}: {one.text}" if one.place else one.text
                if one.mild:
                    terminal.note(said, style="yellow")
                else:
                    bad += 1
                    terminal.error(said)
            else:
                lines.write(one.line() + "\n")
                done += 1
    terminal.note(f"{done} boundaries" + ("" if done else ": these sessions were never compacted"))
    if bad:
        raise SystemExit(int(ExitCode.FAILURE))


def list_() -> None:
    """List the hosts whose sessions can be read, and where they keep them."""
    from winnow.client.readers import READERS

    rows = table("host", "recorded sessions")
    for reader in READERS.values():
        rows.add_row(cell(reader.host, "cyan"), cell(reader.files))
    terminal = Terminal()
    terminal.show(rows)
    terminal.show(Text("winnow hosts read HOST FILE... --out boundaries.jsonl && winnow judge boundaries.jsonl --out -", style="dim"))


def group() -> typer.Typer:
    """The commands below `winnow hosts`."""
    app = typer.Typer(help="Host adapters: read recorded sessions, write out hook programs.", no_args_is_help=True)
    app.command("list")(list_)
    app.command("read")(read)
    return app
