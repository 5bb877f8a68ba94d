"""How the fate of a summary's entries is shown: kept in green, pruned in red, each with its reason."""

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from winnow.cli.terminal import one_line, plain

#: Columns from which on entry and reason stand side by side.
SIDE_BY_SIDE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One entry with what became of it."""

    n: int
    section: str
    text: str
    kept: bool
    score: float | None
    #: Reason code of the decision, and the judge's line.
    reason: str
    explanation: str


def rendered(entries: Iterable[Shown], *, width: int) -> RenderableType:
    """All entries under their headings. Marks and words tell kept from pruned without any colour."""
    side = width >= SIDE_BY_SIDE
    made = Table(box=None, show_header=False, pad_edge=False, expand=side)
    made.add_column(width=6, no_wrap=True)
    made.add_column(width=4, no_wrap=True, justify="right")
    made.add_column(ratio=3, overflow="fold")
    if side:
        made.add_column(ratio=2, overflow="fold")
    section = None
    for entry in entries:
        if entry.section != section:
            section = entry.section
            made.add_row("", "", Text(plain(section) or "(no heading)", style="bold"), *([""] if side else []))
        mark = Text("keep", style="bold green") if entry.kept else Text("prune", style="bold red")
        score = Text("" if entry.score is None else f"{entry.score:.2f}", style="dim")
        text = Text(plain(entry.text), style="" if entry.kept else "red strike")
        why = _why(entry)
        if side:
            made.add_row(mark, score, text, why)
        else:
            made.add_row(mark, score, Group(text, why))
    return made


def _why(entry: Shown) -> Text:
    """The judge's line, with the rule that decided where it was not the score."""
    said = one_line(entry.explanation, 300)
    return Text(said if entry.reason == "score" else f"[{one_line(entry.reason, 60)}] {said}", style="dim" if entry.kept else "yellow")
