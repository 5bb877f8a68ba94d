"""`winnow calibrate`: choose tau or another operating point from measured losses, so that its risk is at most alpha."""

import math
import uuid
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.assurance.kinds import Loss, LossType
from winnow.cli import records, statistics
from winnow.cli.measured import Unusable
from winnow.cli.terminal import Terminal
from winnow.contracts.vocabulary import Missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from winnow.cli.ladder_lines import Ladder
    from winnow.contracts.evaluation import DataFingerprint, Table

#: Thresholds that are tried where entries are given with their scores: keep all, then twentieths.
TAU_STEPS = 20


class SelectBy(StrEnum):
    """How an operating point is chosen."""

    FIXED_SEQUENCE = "fixed-sequence"  # P(risk of the chosen level <= alpha) >= 1 - delta; mildest first, the first failure stops
    HOLM = "holm"  # the same promise over all levels in no order
    BONFERRONI = "bonferroni"  # the same, coarser
    CRC = "crc"  # the mean risk over calibration sets is at most alpha; this one may exceed it
    SEED = "seed"  # the published rules, for comparison


def calibrate(  # noqa: PLR0913  the options of a command
    ladder: Annotated[str | None, typer.Argument(metavar="[LADDER]", help="Levels or units, one a line; - is standard input.")] = None,
    *,
    alpha: Annotated[str, typer.Option(metavar="A", help="Risk budget, read as the decimal that is written.")],
    delta: Annotated[float, typer.Option(metavar="D", help="The choice is wrong with at most this probability.")] = 0.05,
    rule: Annotated[SelectBy, typer.Option(help="How the levels share the error budget.")] = SelectBy.FIXED_SEQUENCE,
    method: Annotated[str | None, typer.Option(metavar="NAME", help="Test of a level; left out: exact, or grid for graded losses.")] = None,
    loss_type: Annotated[LossType, typer.Option("--type", help="Declared type of the losses by unit.")] = LossType.BINARY,
    margin: Annotated[float | None, typer.Option(metavar="M", help="Paired levels: also show the change to be above -M.")] = None,
    fleet: Annotated[str | None, typer.Option(metavar="FLEET", help="Take losses from streams of this fleet.")] = None,
    stream: Annotated[list[str] | None, typer.Option(metavar="STREAM", help="One level a stream, mildest first; repeated.")] = None,
    loss: Annotated[Loss, typer.Option(help="With --stream: what a loss in it is.")] = Loss.HARM_ALL,
    missing: Annotated[Missing, typer.Option(help="A unit of a stream without a grade: a loss of 1, or left out.")] = Missing.FOLD,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the record (JSON), Markdown and HTML.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the levels into an .svg or .png file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The record on standard output, nothing else.")] = False,
) -> None:
    """Choose the level that saves most among those whose risk is shown to be at most alpha; none certified means keep everything.

    The ladder goes from the mildest level to the most aggressive. A line is a level with `k`, `n`, perhaps `savings`; or `lost`, `gained`,
    `n` on paired tasks; or a unit with `losses` by level; or a unit with `scores` and `sourced` of its entries, to choose tau; or a unit
    with `score` and `diverged`, for the threshold below which the pruned context is trusted.

    Exit code 6: computed, and nothing is certified.

    Examples:  winnow calibrate ladder.jsonl --alpha .1 --out calibration

    winnow calibrate entries.jsonl --alpha .02 --type graded

    winnow calibrate --fleet acme --stream tau-3 --stream tau-5 --alpha .05
    """
    from winnow.cli.ladder_lines import read_ladder
    from winnow.contracts.evaluation import Direction, EvaluationKind, EvaluationRecord, Gate, Subject

    terminal = Terminal()
    if plot is not None:
        from winnow.cli.monitor_plot import check

        check(plot)
    budget = _number(alpha)
    if (ladder is None) == (not stream):
        raise Unusable("give the losses in one way: a file, or --stream (once a level) with --fleet")
    if stream:
        found, data, warnings = _from_streams(fleet, stream, loss, missing)
    else:
        content = records.read_bytes(str(ladder))
        taus = [step / TAU_STEPS for step in range(TAU_STEPS + 1)]
        found, warnings = read_ladder(str(ladder), content, loss_type, taus), ()
        n = len(found.units) or max((level.sample.n for level in found.levels), default=0)
        plain = records.fingerprint(str(ladder), content, n or max((c.pairs.n for c in found.candidates), default=0))
        data = (plain.model_copy(update={"unit": "run"}),)
    chosen, guarantee, tables, notes = _choose(found, alpha, budget, delta, rule, method, margin)
    certified = 0 if chosen is None else 1
    record = EvaluationRecord(
        id=uuid.uuid4(),
        kind=EvaluationKind.CALIBRATION,
        created_at=datetime.now(UTC),
        title=f"Operating point: {chosen if chosen is not None else 'keep everything (nothing is certified)'}",
        command=records.command_line(
            "calibrate",
            *([ladder] if ladder else []),
            alpha=alpha,
            delta=delta,
            rule=rule.value,
            method=method,
            type=loss_type.value,
            margin=margin,
            fleet=fleet,
            stream=stream,
            loss=loss.value if stream else None,
            missing=missing.value if stream else None,
        ),
        software=statistics.software(),
        data=data,
        subject=Subject(
            kind="operating point",
            name=(chosen or "keep everything")[:200],
            parameters={"alpha": budget, "delta": delta, "rule": rule.value, "margin": margin, "guarantee": guarantee},
        ),
        gates=(Gate.judge(metric="certified", direction=Direction.AT_LEAST, threshold=1, observed=certified),),
        tables=tables,
        warnings=(*warnings, *(("levels rest on counts: that units are runs cannot be checked",) if not found.units else ())),
        notes=notes,
    )
    if plot is not None:
        statistics.draw(plot, record)
    records.finish(terminal, record, out, as_json=as_json)


def _number(alpha: str) -> float:
    """The budget as a double."""
    try:
        value = float(alpha)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise Unusable(f"--alpha {alpha[:40]!r}: write a number strictly between 0 and 1")
    return value


def _from_streams(
    fleet: str | None, streams: "Sequence[str]", loss: Loss, missing: Missing
) -> "tuple[Ladder, tuple[DataFingerprint, ...], tuple[str, ...]]":
    """One level a stream."""
    from winnow.assurance.selection import Level
    from winnow.cli.ladder_lines import Ladder
    from winnow.cli.measured import from_stream

    if fleet is None:
        raise Unusable("--stream needs --fleet")
    measured = [from_stream(fleet, stream, loss, missing, None) for stream in streams]
    levels = tuple(Level(name=stream, sample=one.sample) for stream, one in zip(streams, measured, strict=True))
    return Ladder(levels=levels, units=("of the streams",)), tuple(m.data for m in measured), tuple(w for m in measured for w in m.warnings)


def _choose(
    found: "Ladder", alpha: str, budget: float, delta: float, rule: SelectBy, method: str | None, margin: float | None
) -> "tuple[str | None, str, tuple[Table, ...], tuple[str, ...]]":
    """Name of the chosen level, guarantee class, tables and notes."""
    if margin is not None and not found.candidates:
        raise Unusable("--margin belongs to levels on paired tasks: give lost, gained and n")
    if found.scored:
        return _trusted(found, budget, delta, rule)
    if found.candidates:
        return _paired(found, budget, delta, rule, margin)
    if rule is SelectBy.CRC:
        return _in_expectation(found, alpha)
    return _certified(found, budget, delta, rule, method)


def _certified(
    found: "Ladder", alpha: float, delta: float, rule: SelectBy, method: str | None
) -> "tuple[str | None, str, tuple[Table, ...], tuple[str, ...]]":
    """Learn-Then-Test."""
    from winnow.assurance import methods, selection
    from winnow.contracts.evaluation import Table

    if rule is SelectBy.SEED:
        method = "hb-seed"
    how = selection.Rule.FIXED_SEQUENCE if rule is SelectBy.SEED else selection.Rule(rule.value)
    chosen = selection.select(found.levels, alpha=alpha, delta=delta, method=method, rule=how)
    rows = tuple(
        (
            level.name[:200],
            level.sample.n,
            level.sample.total,
            methods.upper(level.sample, delta, chosen.method),
            p,
            passed,
            _share(level.savings),
        )
        for level, p, passed in zip(chosen.ladder, chosen.p_values, chosen.certified, strict=True)
    )
    columns = ("level", "n", "losses", "upper bound", "p", "certified", "savings")
    note = f"{chosen.method}, {rule.value}, alpha {alpha:g}, delta {delta:g}. The choice is the certified level with the highest savings."
    table = Table(name="levels", title="The ladder, mildest first", columns=columns, rows=rows, note=note)
    notes = (
        "A bound of one level holds at 1 - delta on its own; the choice holds at 1 - delta as a whole.",
        "One look: ladder, n, alpha and delta have to be fixed before the losses are seen, on data held out from all tuning.",
    )
    return None if chosen.level is None else chosen.level.name, chosen.guarantee.value, (table,), notes


def _in_expectation(found: "Ladder", alpha: str) -> "tuple[str | None, str, tuple[Table, ...], tuple[str, ...]]":
    """Conformal Risk Control; alpha as it is written."""
    from winnow.assurance import crc
    from winnow.contracts.evaluation import Table

    sizes = {level.sample.n for level in found.levels}
    if len(sizes) != 1:
        raise Unusable("crc needs every level on the same units; choose fixed-sequence")
    totals = crc.monotone(found.rows) if found.rows else [level.sample.total for level in found.levels]
    place = crc.select(totals, sizes.pop(), alpha)
    rows = tuple(
        (level.name[:200], level.sample.n, total, place is not None and at <= place, _share(level.savings))
        for at, (level, total) in enumerate(zip(found.levels, totals, strict=True))
    )
    columns = ("level", "n", "losses, running maximum", "within", "savings")
    note = f"(losses + 1) <= {alpha}·(n + 1), decided exactly; the walk stops at the first failure."
    table = Table(name="crc", title="The ladder, mildest first", columns=columns, rows=rows, note=note)
    notes = ("The mean risk over calibration sets is at most alpha; the risk of this choice may exceed it.",)
    return None if place is None else found.levels[place].name, "expectation", (table,), notes


def _paired(
    found: "Ladder", alpha: float, delta: float, rule: SelectBy, margin: float | None
) -> "tuple[str | None, str, tuple[Table, ...], tuple[str, ...]]":
    """Harm bound and non-inferiority, mildest first; or the published scan."""
    from winnow.assurance import bounds, operating, paired, published
    from winnow.contracts.evaluation import Table

    if rule is SelectBy.SEED:
        place = published.aggressive_first([c.pairs for c in found.candidates], margin=0.05 if margin is None else margin)
        names = [candidate.name for candidate in found.candidates]
        notes = ("The published rule, for comparison: it chooses an infeasible level several times as often as its error says.",)
        return None if place is None else names[place], "none", (), notes
    if rule is not SelectBy.FIXED_SEQUENCE:
        raise Unusable("levels on paired tasks are chosen by the fixed sequence")
    chosen = operating.choose(found.candidates, alpha=alpha, delta=delta, margin=margin)
    rows = tuple(
        (
            one.candidate.name[:200],
            one.candidate.pairs.n,
            one.candidate.pairs.lost,
            one.candidate.pairs.gained,
            bounds.exact(one.candidate.pairs.lost, one.candidate.pairs.n, delta),
            one.p_harm,
            None if one.comparison is None else one.comparison.interval[0],
            paired.mcnemar(one.candidate.pairs),
            one.certified,
            _share(one.candidate.savings),
        )
        for one in chosen.tested
    )
    columns = ("level", "n", "lost", "gained", "upper bound", "p", "change, lower bound", "McNemar p", "certified", "savings")
    test = "no margin was asked for" if margin is None else f"change above -{margin:g}, one-sided {chosen.delta_margin:g}"
    note = f"{len(rows)} candidates; harm at most {alpha:g} by the exact test at {delta:g}; {test}. A large McNemar p shows no equality."
    table = Table(name="levels", title="The ladder, mildest first", columns=columns, rows=rows, note=note)
    return None if chosen.candidate is None else chosen.candidate.name, "fixed-n", (table,), ()


def _trusted(found: "Ladder", alpha: float, delta: float, rule: SelectBy) -> "tuple[str | None, str, tuple[Table, ...], tuple[str, ...]]":
    """The threshold of a score below which the pruned context is trusted."""
    from winnow.assurance import published, speculative
    from winnow.contracts.evaluation import Table

    if rule is SelectBy.SEED:
        threshold = published.conditional_scan(list(found.scored), alpha=alpha, delta=delta)
        notes = ("The published scan of conditional bounds, for comparison: it certifies falsely.",)
        return None if threshold is None else f"score <= {threshold:g}", "none", (), notes
    chosen = speculative.select(found.scored, alpha=alpha, delta=delta)
    row = (
        chosen.threshold if chosen.threshold is not None and math.isfinite(chosen.threshold) else None,
        chosen.n,
        chosen.k,
        chosen.bound,
        chosen.trusted,
        chosen.conditional,
    )
    columns = ("threshold", "n", "trusted and diverged", "upper bound", "trusted", "diverged among the trusted")
    note = "The bound is of the joint loss, over all units. The rate among the trusted is an estimate; none trusted is no rate."
    table = Table(name="threshold", title="Trust the pruned context below the threshold", columns=columns, rows=(row,), note=note)
    if chosen.threshold is None or not chosen.trusted:
        return None, "fixed-n", (table,), ()
    name = "score of any size" if math.isinf(chosen.threshold) else f"score < {chosen.threshold:g}"
    return name, "fixed-n", (table,), ()


def _share(savings: float) -> float | None:
    """Savings as a cell."""
    return None if math.isnan(savings) else savings
