"""`winnow show`: one boundary, with the fate of each entry."""

import sys
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer
from rich.text import Text

from winnow.cli.terminal import Terminal, cell, plain, table

if TYPE_CHECKING:
    from winnow.cli import decisions
    from winnow.cli.gateway import Gateway
    from winnow.client.api import BoundaryView, EntryList

_OUTCOME_STYLES = {"judged": "green", "judged_partial": "yellow", "rejected": "red"}


def show(
    boundary_id: Annotated[UUID, typer.Argument(metavar="BOUNDARY", help="Its id, as `winnow runs RUN` shows it.")],
    *,
    wait: Annotated[float, typer.Option(min=0.0, max=600.0, help="Seconds to wait for its result.")] = 0.0,
    evidence: Annotated[bool, typer.Option("--evidence", help="Also the passages that were retrieved for each entry.")] = False,
    committed: Annotated[bool, typer.Option("--committed", help="Only the committed summary, byte for byte.")] = False,
    candidate: Annotated[bool, typer.Option("--candidate", help="Only the candidate, recovered byte for byte.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON: the boundary and its entries.")] = False,
) -> None:
    """Show a boundary: outcome, and for each entry whether it was kept, its score and why."""
    from winnow.cli import decisions
    from winnow.cli.connection import gateway
    from winnow.cli.gateway import Gateway

    terminal = Terminal()
    with Gateway(*gateway()) as api:
        view = api.boundary(boundary_id, wait_s=wait)
        if committed or candidate:
            sys.stdout.buffer.write(_text(api, view, committed=committed))
            sys.stdout.flush()
            return
        entries = api.entries(boundary_id)
    if as_json:
        terminal.json({"boundary": view.model_dump(mode="json"), "entries": [e.model_dump(mode="json") for e in entries.items]})
        return
    terminal.show(headline(view))
    for warning in view.result.warnings if view.result else ():
        terminal.show(Text(f"warning: {plain(warning, 300)}", style="yellow"))
    terminal.show(decisions.rendered(shown(entries), width=terminal.out.width))
    if evidence:
        _show_evidence(terminal, entries)


def headline(view: "BoundaryView") -> Text:
    """One boundary in one line."""
    outcome = view.outcome.value if view.outcome else view.status.value
    line = Text.assemble((plain(view.run), "bold"), f" #{view.index}  ", (str(view.boundary_id), "dim"), "  ")
    line.append(outcome, style=_OUTCOME_STYLES.get(outcome, "cyan"))
    if view.reason:
        line.append(f" ({view.reason.value})")
    if view.mode:
        line.append(f"  {view.mode.value}")
    if view.pruned is not None and view.entries:
        line.append(f"  {view.pruned} of {view.entries} entries pruned")
        # Nothing is left out in the milder modes; what would have been is told where the decisions are at hand (never in shadow mode).
        would = sum(one.decision == "pruned" for one in view.result.decisions) if view.result else 0
        if would > view.pruned:
            line.append(f", {would} would be", style="dim")
    if view.held:
        line.append("  held", style="bold red")
    if view.late:
        line.append("  late", style="bold yellow")
    return line


def shown(entries: "EntryList") -> "list[decisions.Shown]":
    """The entries as they are rendered."""
    from winnow.cli import decisions

    return [
        decisions.Shown(
            n=entry.n,
            section=entry.section,
            text=entry.text,
            kept=entry.decision != "pruned",
            score=entry.score,
            reason=entry.decision_reason or "not_judged",
            explanation=entry.explanation or "",
        )
        for entry in entries.items
    ]


def _show_evidence(terminal: Terminal, entries: "EntryList") -> None:
    """The retrieved passages, best first."""
    rows = table("entry", "rank", "bm25", "message", "tool", "text", title="Evidence")
    for entry in entries.items:
        for passage in entry.evidence:
            values = (entry.n, passage.rank, f"{passage.bm25:.2f}", f"#{passage.message}", passage.tool)
            rows.add_row(*(cell(value) for value in values), cell(passage.text, "dim", most=300))
    terminal.show(rows)


def _text(api: "Gateway", view: "BoundaryView", *, committed: bool) -> bytes:
    """The exact bytes of the committed summary or of the candidate. Raise `NotFound` where there is none (yet)."""
    from winnow.contracts.errors import NotFound

    if view.result is None:
        msg = f"boundary {view.boundary_id} has no result yet; try --wait 60"
        raise NotFound(msg)
    if not committed:
        if view.result.candidate_handle is None:
            raise NotFound("this boundary's candidate was not stored")
        return api.original(view.result.candidate_handle)
    summary = view.result.summary
    if summary is None:
        raise NotFound("this boundary was rejected; nothing was committed")
    return summary.text.encode() if summary.text is not None else api.original(summary.handle or "")
