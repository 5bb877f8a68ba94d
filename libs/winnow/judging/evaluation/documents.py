"""An evaluation record as Markdown and as one HTML page. Texts of entries are somebody's content: they are escaped, and nothing runs."""

import re
from collections.abc import Mapping
from html import escape
from typing import Final

from winnow.contracts.evaluation import Cell, EvaluationRecord, Gate, Interval, Table

#: Tables that exist for plots and scripts; a page of two hundred points helps nobody.
_UNSHOWN: Final = frozenset({"curves"})
#: What could be read as Markdown or as HTML inside it.
_MARKUP: Final = re.compile(r"[\\`*_{}\[\]<>|#!~&]")

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; }
table { border-collapse: collapse; margin: .5rem 0 1rem; font-size: .85rem; display: block; overflow-x: auto; }
th, td { border: 1px solid #d0d7de; padding: .2rem .5rem; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th { background: #f3f5f7; }
.warning { border-left: 4px solid #bf8700; padding: .3rem .8rem; background: #fff8e5; }
.passed { color: #1a7f37; font-weight: 600; } .failed { color: #cf222e; font-weight: 600; } .no_gate { color: #57606a; font-weight: 600; }
.note { color: #57606a; font-size: .85rem; }
figure { display: inline-block; margin: .5rem 1rem .5rem 0; max-width: 100%; } svg { max-width: 100%; height: auto; }
"""

#: What stands where plots would, when they could not be drawn.
NO_PLOTS: Final = "No plots: matplotlib is not installed. Install it with: pip install 'winnow-compaction[plots]'"


def visible(text: str) -> str:
    """`text` with every character that is not printed written as an escape; line ends become blanks."""
    return "".join(c if c.isprintable() else " " if c in "\n\r\t" else f"\\u{ord(c):04x}" for c in text)


def shown(cell: Cell) -> str:
    """A cell as people read it: numbers with at most four decimals, a dash for what is not defined."""
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        if cell == int(cell) and abs(cell) < 1e15:  # noqa: PLR2004  whole numbers are exact up to here
            return f"{cell:.0f}" if abs(cell) > 1 else f"{cell:.1f}"
        return f"{cell:.3f}" if abs(cell) >= 0.01 else f"{cell:.4g}"  # noqa: PLR2004  below it three decimals say little
    return visible(cell) if isinstance(cell, str) else str(cell)


def ranged(value: float | None, interval: Interval | None) -> str:
    """A value with its interval."""
    if interval is None or value is None:
        return shown(value)
    return f"{shown(value)} [{shown(interval.lo)}, {shown(interval.hi)}]"


def gate_text(gate: Gate) -> str:
    """A gate in words: the condition and what was observed."""
    label = gate.metric if gate.slice == "all" else f"{gate.metric}.{gate.slice}"
    sign = ">=" if gate.direction == "at_least" else "<="
    return f"{visible(label)} {sign} {gate.threshold:g}: observed {shown(gate.observed)}"


def facts(record: EvaluationRecord) -> list[tuple[str, str]]:
    """Who measured what on which data, as name and value."""
    subject = f"{record.subject.kind} {record.subject.name}" + (f", version {record.subject.version}" if record.subject.version else "")
    settings = ", ".join(f"{name} {shown(value)}" for name, value in record.subject.parameters.items() if value is not None)
    found = [("Subject", subject), ("Settings", settings or "none")]
    found += [("Data", f"{data.source}: {data.n} × {data.unit}, sha256 {data.sha256} of {data.of}") for data in record.data]
    found.append(("Exposure", record.exposure.value.replace("_", " ")))
    if record.grader is not None:
        words = [record.grader.kind.value, record.grader.name, record.grader.version]
        if record.grader.agreement is not None:
            words.append(f"agreement {shown(record.grader.agreement)} ({record.grader.agreement_measure or 'measure not stated'})")
        found.append(("Grader", ", ".join(word for word in words if word)))
    compressor = record.compressor
    who = "not stated" if compressor is None else ", ".join(w for w in (compressor.name, compressor.version, compressor.model) if w)
    found += [
        ("Compressor", who),
        ("Made", f"{record.created_at.isoformat(timespec='seconds')} by {', '.join(f'{k} {v}' for k, v in record.software.items())}"),
        ("Command", record.command or "not stated"),
        ("Seed", "none" if record.seed is None else str(record.seed)),
        ("Record", str(record.id)),
    ]
    return [(name, visible(value)) for name, value in found]


def markdown(record: EvaluationRecord) -> str:
    """The record as Markdown."""
    parts = [
        f"# {_md(record.title)}",
        f"Status: **{record.status.value}**" + ("" if record.gates else " (no gate was set; that is not a pass)"),
    ]
    parts += [f"> **Note well.** {_md(warning)}" for warning in record.warnings]
    parts.append("\n".join(["| | |", "|---|---|", *(f"| {name} | {_md(value)} |" for name, value in facts(record))]))
    if record.gates:
        parts += ["## Gates", "\n".join(f"* {'passed' if gate.passed else '**failed**'}: {_md(gate_text(gate))}" for gate in record.gates)]
    for claim in record.claims:
        line = (
            f"* **{_md(claim.name)}**: {_md(claim.statement)} Published {_md(shown(claim.published))}, found {_md(shown(claim.observed))}"
        )
        parts.append(f"{line}: {claim.verdict.value}. {_md(claim.definition)}")
    if record.certificate is not None:
        parts += ["## Certificate", f"{record.certificate.verdict.value}: {_md(record.certificate.statement)}"]
    parts += [_md_table(table) for table in record.tables if table.name not in _UNSHOWN]
    parts += ["## All figures", _md_figures(record)]
    if record.notes:
        parts += ["## Notes", "\n".join(f"* {_md(note)}" for note in record.notes)]
    return "\n\n".join(parts) + "\n"


def _md(text: str) -> str:
    """A text with nothing in it that Markdown would act on."""
    return _MARKUP.sub(lambda found: {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(found[0], "\\" + found[0]), visible(text))


def _md_table(table: Table) -> str:
    """A table with its title and note."""
    lines = [f"## {_md(table.title)}", ""]
    if table.note:
        lines += [_md(table.note), ""]
    lines += ["| " + " | ".join(map(_md, table.columns)) + " |", "|" + "---|" * len(table.columns)]
    lines += ["| " + " | ".join(_md(shown(cell)) for cell in row) + " |" for row in table.rows]
    return "\n".join(lines)


def _md_figures(record: EvaluationRecord) -> str:
    """Every figure on one line."""
    lines = ["| figure | slice | value | n | how |", "|---|---|---|---|---|"]
    for m in record.metrics:
        how = "; ".join(word for word in (m.method, m.note, m.interval.method if m.interval else "") if word)
        value = ranged(m.value, m.interval) + (f" {m.unit}" if m.unit and m.value is not None else "")
        lines.append(f"| {_md(m.name)} | {_md(m.slice)} | {_md(value)} | {m.n} | {_md(how)} |")
    return "\n".join(lines)


def html(record: EvaluationRecord, plots: Mapping[str, str] | None) -> str:
    """The record as one HTML page without scripts or outside parts.

    `plots` are SVG images by title, as `plots.of` draws them; None where they cannot be drawn, which the page then says.
    """
    status = record.status.value
    said = status.replace("_", " ") + ("" if record.gates else ": nothing was asked, so nothing passed")
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{_h(record.title)}</title><style>{_STYLE}</style></head><body>",
        f'<h1>{_h(record.title)}</h1><p>Status: <span class="{status}">{said}</span></p>',
    ]
    parts += [f'<p class="warning">{_h(warning)}</p>' for warning in record.warnings]
    parts.append("<table>" + "".join(f"<tr><th>{_h(name)}</th><td>{_h(value)}</td></tr>" for name, value in facts(record)) + "</table>")
    if record.gates:
        rows = [
            f'<li><span class="{word}">{word}</span> {_h(gate_text(gate))}</li>'
            for gate in record.gates
            for word in ("passed" if gate.passed else "failed",)
        ]
        parts.append(f"<h2>Gates</h2><ul>{''.join(rows)}</ul>")
    parts += [
        f"<p><b>{_h(claim.name)}</b>: {_h(claim.statement)} Published {_h(shown(claim.published))}, found {_h(shown(claim.observed))}: "
        f"{claim.verdict.value}. {_h(claim.definition)}</p>"
        for claim in record.claims
    ]
    if record.certificate is not None:
        parts.append(f"<h2>Certificate</h2><p>{record.certificate.verdict.value}: {_h(record.certificate.statement)}</p>")
    if plots is None:
        parts.append(f'<p class="note">{_h(NO_PLOTS)}</p>')
    else:
        parts += [f"<figure>{svg}<figcaption>{_h(title)}</figcaption></figure>" for title, svg in plots.items()]
    parts += [_html_table(table) for table in record.tables if table.name not in _UNSHOWN]
    parts.append(f"<h2>All figures</h2>{_html_figures(record)}")
    if record.notes:
        parts.append("<h2>Notes</h2><ul>" + "".join(f"<li>{_h(note)}</li>" for note in record.notes) + "</ul>")
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _h(text: str) -> str:
    """A text as HTML shows it."""
    return escape(visible(text))


def _td(cell: Cell) -> str:
    """One cell, numbers to the right."""
    number = isinstance(cell, int | float) and not isinstance(cell, bool)
    return f'<td class="number">{shown(cell)}</td>' if number else f"<td>{_h(shown(cell))}</td>"


def _html_table(table: Table) -> str:
    """A table with its title and note."""
    head = "".join(f"<th>{_h(name)}</th>" for name in table.columns)
    body = "".join("<tr>" + "".join(map(_td, row)) + "</tr>" for row in table.rows)
    note = f'<p class="note">{_h(table.note)}</p>' if table.note else ""
    return f"<h2>{_h(table.title)}</h2>{note}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_figures(record: EvaluationRecord) -> str:
    """Every figure on one line."""
    rows = []
    for m in record.metrics:
        how = "; ".join(word for word in (m.method, m.note, m.interval.method if m.interval else "") if word)
        value = ranged(m.value, m.interval) + (f" {m.unit}" if m.unit and m.value is not None else "")
        rows.append(
            f'<tr><td>{_h(m.name)}</td><td>{_h(m.slice)}</td><td class="number">{_h(value)}</td><td class="number">{m.n}</td>'
            f"<td>{_h(how)}</td></tr>"
        )
    return f"<table><tr><th>figure</th><th>slice</th><th>value</th><th>n</th><th>how</th></tr>{''.join(rows)}</table>"
