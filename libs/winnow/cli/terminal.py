"""What a person sees: tables and colours on a terminal, plain lines elsewhere, and never a byte that steers the terminal."""

import json
import os
import re
import sys
from datetime import UTC, datetime
from typing import Any, NoReturn

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from winnow.cli.exits import ExitCode

#: Columns where standard output is no terminal; wide enough that a log or a pipe breaks no line that a terminal would not.
PLAIN_WIDTH = 160

# Controls (C0 without tab and newline, DEL, C1), line and paragraph separator, bidirectional marks and overrides, zero-width characters,
# tags, and surrogates: all that can move the cursor, recolour, retitle or reorder what stands on a terminal, or hide in it.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def plain(text: str, most: int | None = None) -> str:
    r"""`text` with everything that steers a terminal written as a visible escape, such as `\x1b`; cut to `most` characters.

    Tabs and newlines stay. Linear in what is shown.
    """
    if most is not None and len(text) > most:
        text = text[: max(0, most - 1)] + "…"
    return _UNSAFE.sub(_visible, text)


def one_line(text: str, most: int | None = None) -> str:
    """`plain`, on one line: runs of white space are one space."""
    return plain(" ".join(text.split()) if most is None else " ".join(text[: 4 * most + 100].split()), most)


def _visible(match: re.Match[str]) -> str:
    """The escape that Python would write for a character."""
    code = ord(match[0])
    if code <= 0xFF:  # noqa: PLR2004  two hexadecimal digits
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004  four


class Terminal:
    """Standard output and standard error of one command."""

    def __init__(self) -> None:
        """Look at what standard output and standard error are now."""
        self.out = _console(sys.stdout)
        self.err = _console(sys.stderr)

    @property
    def interactive(self) -> bool:
        """A person reads standard output and can answer."""
        return self.out.is_terminal and sys.stdin.isatty()

    def show(self, *what: RenderableType) -> None:
        """Print renderables; a plain `str` is shown as it is, without markup, its controls made visible."""
        for one in what:
            self.out.print(Text(plain(one)) if isinstance(one, str) else one)

    def json(self, value: Any) -> None:  # noqa: ANN401  whatever JSON can hold
        """Print one line of JSON, ASCII only: lone surrogates survive and nothing steers a terminal."""
        sys.stdout.write(json.dumps(value, default=str, separators=(", ", ": ")) + "\n")

    def note(self, text: str, style: str = "dim") -> None:
        """Say something beside the result, on standard error."""
        self.err.print(Text(plain(text), style=style))

    def error(self, text: str) -> None:
        """Say on standard error what is wrong and what to do."""
        self.err.print(Text.assemble(("winnow: ", "bold red"), plain(text)))

    def fail(self, text: str, code: ExitCode = ExitCode.FAILURE) -> NoReturn:
        """Say what is wrong and end the command with `code`."""
        self.error(text)
        raise SystemExit(int(code))


def table(*columns: str, title: str | None = None) -> Table:
    """A table of plain columns; cells must be `Text` or `cell(...)`, since a bare `str` would be read as markup."""
    made = Table(title=Text(title, style="bold") if title else None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(Text(column))
    return made


def cell(value: object, style: str = "", most: int = 2_000) -> Text:
    """A table cell of untrusted content."""
    return Text("" if value is None else one_line(str(value), most), style=style)


def minute(at: datetime | None) -> str:
    """A time to the minute, in UTC; empty where there is none."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if at else ""


def _console(stream: Any) -> Console:  # noqa: ANN401  a text stream, whatever stands in for it under test
    """A console without markup, emoji or highlighting of its own: what is printed is what was given."""
    tty = bool(getattr(stream, "isatty", lambda: False)())
    return Console(
        file=stream,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=not tty,
        width=None if tty else PLAIN_WIDTH,
        no_color=None if tty else True,
        force_terminal=tty and os.environ.get("TERM") != "dumb",
    )
