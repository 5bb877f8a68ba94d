"""`winnow hosts`: recorded sessions as boundaries, and the adapters that are shipped for hosts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal, cell, table

if TYPE_CHECKING:
    from winnow.hosts_assets import Program


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
    terminal.note(f"{done} {'boundary' if done == 1 else 'boundaries'}" + ("" if done else ": these sessions were never compacted"))
    if bad:
        raise SystemExit(int(ExitCode.FAILURE))


def list_() -> None:
    """List the hosts whose sessions can be read, and the programs that are shipped for hosts."""
    from winnow.client.readers import READERS
    from winnow.hosts_assets import PROGRAMS

    sessions = table("host", "recorded sessions", title="winnow hosts read HOST FILE...")
    for reader in READERS.values():
        sessions.add_row(cell(reader.host, "cyan"), cell(reader.files))
    programs = table("host", "program", title="winnow hosts install HOST --to FOLDER")
    for program in PROGRAMS.values():
        programs.add_row(cell(program.name, "cyan"), cell(program.about))
    Terminal().show(sessions, programs)


def show(host: Annotated[str, typer.Argument(metavar="HOST", help="Whose program.")]) -> None:
    """Print a host's program, file after file."""
    terminal = Terminal()
    for name, text in _program(terminal, host).contents().items():
        terminal.note(name, style="bold")
        terminal.show(text.rstrip("\n"))


def install(
    host: Annotated[str, typer.Argument(metavar="HOST", help="Whose program.")],
    *,
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Where the files go; made where it is not there.")],
    force: Annotated[bool, typer.Option("--force", help="Replace files of other content.")] = False,
) -> None:
    """Write a host's program into a folder, and say where the host looks for it.

    Nothing else is touched: no settings of the host are changed. A file that is there with other content stays, unless --force is given.
    """
    terminal = Terminal()
    program = _program(terminal, host)
    contents = program.contents()
    try:
        others = [name for name, text in contents.items() if (to / name).exists() and (to / name).read_bytes() != text.encode()]
        if others and not force:
            terminal.fail(f"{to}: {', '.join(others)} there already, with other content; --force replaces it", ExitCode.CONFLICT)
        to.mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            (to / name).write_bytes(text.encode())
    except OSError as exc:
        terminal.fail(f"{to}: {exc.strerror or exc}")
    terminal.note(f"{len(contents)} files in {to}; {program.place}")


def hook(
    host: Annotated[str, typer.Argument(metavar="HOST", help="The host that runs this command: claude-code or codex.")],
    *,
    fleet: Annotated[
        str | None, typer.Option(envvar="WINNOW_FLEET", help="The API key's fleet; left out: that of `winnow up`, else default.")
    ] = None,
    deadline: Annotated[float, typer.Option(min=0.0, max=60.0, help="Seconds that the host waits at most; below its own time-out.")] = 10.0,
    recovery_tool: Annotated[
        bool, typer.Option(envvar="WINNOW_RECOVERY_TOOL", help="The agent has the tools of `winnow mcp`; said with every report.")
    ] = False,
) -> None:
    """Judge the compaction that a host's hook tells of on standard input; run by the host, not by a person.

    Fails open: whatever happens, the exit code is 0 and standard output holds nothing but an answer that the host understands.
    """
    import json
    import sys

    from winnow.cli.connection import gateway, running
    from winnow.client import HttpTransport, SyncWinnowClient
    from winnow.client.hosts.command_hook import INPUT_BYTES, NotForUs, answer
    from winnow.contracts.errors import WinnowError

    terminal = Terminal()
    if host not in {"claude-code", "codex"}:
        terminal.fail(f"no command hook for {host!r}; there are claude-code, codex", ExitCode.USAGE)
    try:
        said = sys.stdin.buffer.read(INPUT_BYTES + 1)
        found = running()
        with SyncWinnowClient(HttpTransport(*gateway()), deadline_s=deadline, recovery_tool=recovery_tool or None) as client:
            made = answer(host, said, client, fleet=fleet or (found.fleet if found else "default"))
    except NotForUs as exc:
        terminal.note(str(exc))
        return
    except (WinnowError, ValueError) as exc:  # no gateway, a key or a URL that is none, names that no event may carry
        terminal.error(str(exc) if isinstance(exc, WinnowError) else f"the boundary or the settings are not valid ({type(exc).__name__})")
        return
    if made is not None:
        sys.stdout.write(json.dumps(made) + "\n")


def _program(terminal: Terminal, host: str) -> "Program":
    from winnow.hosts_assets import PROGRAMS

    program = PROGRAMS.get(host)
    if program is None:
        terminal.fail(f"no program for {host!r}; there are {', '.join(PROGRAMS)}", ExitCode.USAGE)
    return program


def group() -> typer.Typer:
    """The commands below `winnow hosts`."""
    app = typer.Typer(help="Host adapters: read recorded sessions, write out hook programs.", no_args_is_help=True)
    app.command("list")(list_)
    app.command("read")(read)
    app.command("show")(show)
    app.command("install")(install)
    app.command("hook")(hook)
    return app
