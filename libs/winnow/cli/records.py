"""Evaluation records on the command line: shown, written with their documents, and what goes into each of them."""

import platform
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from winnow import __version__
from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal, cell, table
from winnow.contracts.errors import Permanent
from winnow.contracts.evaluation import DataFingerprint, EvaluationKind, EvaluationRecord, Table
from winnow.contracts.events import sha256

if TYPE_CHECKING:
    from rich.table import Table as RichTable

#: Name of the files that `--out` receives, without their endings.
STEM = "evaluation"
#: Slices that the terminal shows; the documents have all.
_SLICES = frozenset({"all", "reasoning", "first", "later", "later reasoning", "forward"})
#: Figures of them that the terminal shows.
_FIGURES = ("auroc", "ap_unsourced", "precision_at_r900", "precision", "recall", "brier", "ece")
#: Figures of the whole data that the terminal shows besides.
_FURTHER = (
    "auroc_p", "auroc_correct", "unscored", "only_user_kept", "repeat_changed", "order_changed", "auroc_difference", "disagreement",
    "requests", "input_tokens", "output_tokens", "cost", "latency_p50", "failed_calls",
)  # fmt: skip
#: Tables of a judge's record that the terminal shows besides; of other records it shows all.
_TABLES = ("sections", "verdicts", "findings", "stress", "repetition", "disagreement")


def finish(terminal: Terminal, record: EvaluationRecord, out: Path | None, *, as_json: bool) -> None:
    """Write the documents, show the record, and end with exit code 6 where a gate was not met."""
    if out is not None:
        for path in write(record, out):
            terminal.note(f"written: {path}")
    if as_json:
        sys.stdout.write(record.to_json())
    else:
        show(terminal, record)
    if any(not one.passed for one in record.gates):
        raise SystemExit(int(ExitCode.GATE))


def make_folder(folder: Path | None) -> None:
    """Make the folder of `--out`, before anything is measured that could then not be written. Raise `Permanent`."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as exc:
        msg = f"{folder}: {getattr(exc, 'strerror', None) or exc}"
        raise Permanent(msg) from None


def write(record: EvaluationRecord, folder: Path) -> list[Path]:
    """Write record, Markdown and HTML into a folder; return their paths. Raise `Permanent` where that is not possible."""
    from winnow.judging.evaluation import documents, plots

    make_folder(folder)
    pages = {
        "json": record.to_json(),
        "md": documents.markdown(record),
        "html": documents.html(record, plots.of(record) if plots.drawable() else None),
    }
    written = []
    for ending, text in pages.items():
        path = folder / f"{STEM}.{ending}"
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as exc:
            msg = f"{path}: {exc.strerror or exc}"
            raise Permanent(msg) from None
        written.append(path)
    return written


def show(terminal: Terminal, record: EvaluationRecord) -> None:
    """The record in short."""
    from winnow.judging.evaluation.documents import facts, gate_text, ranged

    terminal.show(record.title)
    for warning in record.warnings:
        terminal.show(f"Note well: {warning}")
    for name, value in facts(record):
        terminal.show(f"  {name}: {value}")
    of_judge = record.kind is EvaluationKind.JUDGE
    by_slice = {metric.slice: metric for metric in record.metrics if of_judge and metric.name == "pruned"}
    if by_slice:
        rows = table("slice", "n", "sourced", *_FIGURES, title="Figures by slice")
        for name, counted in by_slice.items():
            if name in _SLICES:
                of = [record.metric(figure, name) for figure in _FIGURES]
                values = ["" if one is None else ranged(one.value, one.interval if one.name == "auroc" else None) for one in of]
                rows.add_row(*(cell(value) for value in (name, counted.n, counted.positives, *values)))
        terminal.show(rows)
    further = [metric for metric in record.metrics if of_judge and metric.slice == "all" and metric.name in _FURTHER]
    if further:
        rows = table("figure", "value", "how", title="Further figures")
        for figure in further:
            value = f"{ranged(figure.value, figure.interval)} {figure.unit}".strip()
            rows.add_row(cell(figure.name), cell(value), cell(figure.method or figure.note))
        terminal.show(rows)
    chosen = [one for one in record.tables if one.name in _TABLES or not of_judge]
    for one in chosen:
        terminal.show(rich(one))
    for gate in record.gates:
        terminal.show(f"gate {'passed' if gate.passed else 'FAILED'}: {gate_text(gate)}")
    terminal.show(f"status: {record.status.value}" + ("" if record.gates else " (no --gate was given; that is not a pass)"))


def rich(found: Table) -> "RichTable":
    """A table for the terminal."""
    from winnow.judging.evaluation.documents import shown

    rows = table(*found.columns, title=found.title)
    for row in found.rows:
        rows.add_row(*(cell(shown(one)) for one in row))
    return rows


def read_bytes(name: str) -> bytes:
    """A whole file, or standard input for `-`."""
    from winnow.cli.boundary_lines import source_of

    try:
        with source_of(name) as file:
            return file.read()
    except OSError as exc:
        msg = f"{name}: {exc.strerror or exc}"
        raise Permanent(msg) from None


def fingerprint(name: str, content: bytes, boundaries: int) -> DataFingerprint:
    """The data by its bytes; its name without its folder."""
    source = "standard input" if name == "-" else "".join(c if c.isprintable() else "?" for c in Path(name).name)[:200]
    return DataFingerprint(source=source or "data", sha256=sha256(content), n=boundaries, unit="boundary")


def software() -> dict[str, str]:
    """Versions that figures depend on."""
    import numpy as np

    from winnow.compaction.analysis import FEATURES_VERSION
    from winnow.compaction.parse import PARSER_VERSION

    return {
        "winnow": __version__,
        "parser": PARSER_VERSION,
        "features": FEATURES_VERSION,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def command_line(*words: str, **options: object) -> str:
    """A command as it can be given again: options that are None are left out, a list is one option each."""
    said = ["winnow", *words]
    for name, value in options.items():
        values = value if isinstance(value, list) else [] if value is None else [value]
        for one in values:
            said += [f"--{name.replace('_', '-')}", str(one)]
    return shlex.join(said)
