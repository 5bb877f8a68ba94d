"""`winnow parse`: how Winnow reads a summary, without judging it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal, cell, plain, table
from winnow.contracts.errors import WinnowError

if TYPE_CHECKING:
    from winnow.compaction.segments import Parsed

#: Colours of what is not an entry, by kind of segment.
_STYLES = {"heading": "bold", "placeholder": "dim italic", "pinned": "magenta", "host": "blue", "outside": "dim", "opaque": "yellow"}


def parse(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help='Plain text, or JSON with a field "summary"; - is standard input.')],
    *,
    host: Annotated[
        str | None, typer.Option(help="Whose format it is (openclaw, codex, ...); left out: the file's, else detected.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a file.")] = False,
) -> None:
    """Split summaries into segments and entries, losslessly.

    Segment texts join to the input; spans are UTF-8 byte offsets. A file that cannot be read is named on standard error, the rest goes on
    and the exit code is 1.
    """
    from winnow.cli import summaries
    from winnow.compaction.parse import parse as parsed_of

    terminal = Terminal()
    failed = False
    for name in files:
        try:
            file = summaries.read(name)
        except WinnowError as exc:
            terminal.error(str(exc))
            failed = True
            continue
        parsed = parsed_of(file.text, host=host or file.host)
        for warning in parsed.warnings:
            terminal.note(f"{name}: {warning}", style="yellow")
        if as_json:
            terminal.json(as_value(name, parsed))
        else:
            _show(terminal, name, parsed)
    if failed:
        raise SystemExit(int(ExitCode.FAILURE))


def as_value(name: str, parsed: "Parsed") -> dict[str, Any]:
    """The line of JSON for one file; this form is kept."""
    value: dict[str, Any] = {
        "file": name,
        "profile": parsed.profile,
        "outcome": "summary" if parsed.outcome is None else "not_a_summary",
    }
    if parsed.outcome is not None:
        value["reason"] = parsed.outcome.value
    return value | {
        "segments": [{"kind": s.kind.value, "text": s.text} for s in parsed.segments],
        "entries": [{"n": e.n, "section": e.section, "text": e.text, "span": list(e.span)} for e in parsed.entries],
    }


def _show(terminal: Terminal, name: str, parsed: "Parsed") -> None:
    """The summary as a person reads it: entries numbered, everything else named by its kind."""
    how = "detected" if parsed.detected else "given"
    terminal.show(Text.assemble((plain(name), "bold"), f"  profile {parsed.profile} ({how}), {len(parsed.entries)} entries"))
    if parsed.outcome is not None:
        terminal.show(Text(f"not a summary: {parsed.outcome.value}", style="bold yellow"))
    rows = table("entry", "bytes", "kind", "text")
    spans = {e.n: e.span for e in parsed.entries}
    for segment in parsed.segments:
        text = segment.text.rstrip("\r\n")
        if not text:
            continue
        if segment.entry is None:
            rows.add_row("", "", cell(segment.kind.value, "dim"), Text(plain(text), style=_STYLES.get(segment.kind.value, "dim")))
        else:
            start, end = spans[segment.entry]
            rows.add_row(cell(segment.entry, "cyan"), cell(f"{start}-{end}", "dim"), "", Text(plain(text)))
    terminal.show(rows)
