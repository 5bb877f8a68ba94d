"""`winnow certify`: bound the risk of pruning from measured losses, and issue a certificate that expires and can be revoked."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from winnow.assurance.kinds import Graders, Loss, LossType, Order, Unit
from winnow.cli import certificates, records, statistics
from winnow.cli.measured import Measured, Unusable, from_counts, from_file, from_stream
from winnow.cli.terminal import Terminal
from winnow.contracts.vocabulary import Missing

if TYPE_CHECKING:
    from winnow.assurance.certificates import Evidence, Terms
    from winnow.contracts.evaluation import EvaluationKind, EvaluationRecord, Table

#: Days that a certificate lives unless asked otherwise: a month of traffic, models and prompts.
LIFE_DAYS = 30
#: Random partitions of the dispersion test over domains.
PERMUTATIONS = 2_000
#: Bounds of counts whose coverage is enumerated beside a certificate, and units up to which that takes under a second.
_ENUMERABLE = frozenset({"exact", "hb"})
MOST_ENUMERATED = 5_000

LossOption = Annotated[Loss, typer.Option("--loss", help="What is a loss; its type is declared by it, never guessed.")]
Alpha = Annotated[float, typer.Option(metavar="A", help="Risk budget: the rate that must not be exceeded.")]
Delta = Annotated[float, typer.Option(metavar="D", help="The statement is wrong with at most this probability.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the record (JSON), Markdown and HTML.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the bounds into an .svg or .png file.")]
AsJson = Annotated[bool, typer.Option("--json", help="The record on standard output, nothing else.")]
Stream = Annotated[list[str] | None, typer.Option(metavar="STREAM", help="Take the losses from this stream of --fleet.")]


class _Origin(NamedTuple):
    """Where the losses are, as the options say it."""

    file: str | None
    counts: str | None
    solved: int | None
    fleet: str | None
    stream: str | None
    missing: Missing


def certify(  # noqa: PLR0913  the options of a command
    losses: Annotated[str | None, typer.Argument(metavar="[LOSSES]", help="Units, one a line; - is standard input.")] = None,
    *,
    alpha: Alpha,
    delta: Delta = 0.05,
    kind: LossOption = Loss.HARM_ALL,
    counts: Annotated[str | None, typer.Option(metavar="K/N", help="Instead of a file: K losses in N units.")] = None,
    solved: Annotated[int | None, typer.Option(min=0, help="With --counts: units that the reference solves.")] = None,
    unit: Annotated[Unit, typer.Option(help="What one loss belongs to; turns are refused.")] = Unit.TRAJECTORY,
    turns_are_independent: Annotated[bool, typer.Option("--turns-are-independent", help="Count turns all the same; flagged.")] = False,
    method: Annotated[str | None, typer.Option(metavar="NAME", help="Bound; left out: exact for binary losses, grid for others.")] = None,
    registration: Annotated[Path | None, typer.Option(metavar="FILE", help="Terms registered by `winnow plan register`.")] = None,
    graders: Annotated[Graders, typer.Option(help="How several graders' verdicts become one.")] = Graders.ANY,
    in_order: Annotated[bool, typer.Option("--in-order", help="The lines are in registered sampling order (wsr needs it).")] = False,
    compressor: Annotated[str | None, typer.Option(metavar="NAME[:VERSION]", help="Who writes the summaries.")] = None,
    judge: Annotated[str | None, typer.Option(metavar="NAME[:VERSION]", help="The judge; with --fleet left out: the fleet's.")] = None,
    tau: Annotated[float | None, typer.Option(min=0, max=1, help="The served threshold; with --fleet left out: the fleet's.")] = None,
    grader: Annotated[str | None, typer.Option(metavar="KIND[:NAME]", help="Who measured: human, model, rule or synthetic.")] = None,
    agreement: Annotated[float | None, typer.Option(min=0, max=1, help="Share of equal A/A re-runs of the grader.")] = None,
    life_days: Annotated[float, typer.Option("--life", metavar="DAYS", help="Days until it expires.")] = LIFE_DAYS,
    horizon: Annotated[int | None, typer.Option(min=1, help="Units over which a monitor guards it.")] = None,
    follows: Annotated[Path | None, typer.Option(metavar="FILE", help="Record of the certificate that this one follows.")] = None,
    calibration: Annotated[Path | None, typer.Option(metavar="FILE", help="Record of the calibration that chose the point.")] = None,
    fleet: Annotated[str | None, typer.Option(metavar="FLEET", help="Issue it for this fleet: stored, where certified.")] = None,
    stream: Annotated[str | None, typer.Option(metavar="STREAM", help="Take the losses from this stream of --fleet.")] = None,
    missing: Annotated[Missing, typer.Option(help="A unit of the stream without a grade: a loss of 1, or left out.")] = Missing.FOLD,
    out: Out = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Bound the risk of pruning and say what that amounts to: certified, unproven or breached.

    A line is a number, or an object with `unit` and one of `loss`, `losses` (of a run's turns: their mean counts, declare graded),
    `decisions` ([reference, reference again, pruned]), `verdicts` (of several graders), or `reference` and `pruned` (solved or not),
    perhaps with `rerun` and `domain`. One line a run or session; a unit that comes twice is refused.

    Exit code 6: computed, and not certified. Nothing is stored then.

    Examples:  winnow certify runs.jsonl --alpha .1 --grader rule:tests --compressor openclaw:2026.9 --out certificate

    winnow certify --counts 31/500 --solved 196 --alpha .1 --json

    winnow certify runs.jsonl --alpha .1 --fleet acme --grader rule:tests --compressor openclaw --life 14
    """
    from winnow.assurance.certificates import Issue, Terms, assess
    from winnow.assurance.certificates import record as record_of
    from winnow.contracts.evaluation import EvaluationKind

    terminal = Terminal()
    _check_plot(plot)
    registered_n = None if registration is None else _registered(registration, kind, alpha, delta, unit, method)
    terms = Terms(
        loss=kind,
        alpha=alpha,
        delta=delta,
        unit=unit,
        method=method,
        n=registered_n,
        turns_are_independent=turns_are_independent,
    )
    if fleet is not None and unit is Unit.TURN:
        raise Unusable("a certificate over turns is not stored: give one loss a trajectory or session")
    order = Order.SEQ if in_order or stream is not None else Order.ANY
    measured = _measure(terms, _Origin(losses, counts, solved, fleet, stream, missing), graders, order)
    evidence = assess(terms, measured.sample, solved=measured.solved)
    ladder = None if calibration is None else _record(calibration, EvaluationKind.CALIBRATION, "winnow calibrate --out")
    bound = certificates.bound(
        measured,
        certificates.Said(
            compressor=compressor,
            judge=judge,
            tau=tau,
            grader=grader,
            agreement=agreement,
            fleet=fleet,
            follows=None if follows is None else _record(follows, EvaluationKind.CERTIFICATE, "winnow certify --out"),
            calibration=ladder,
        ),
    )
    issue = Issue(
        id=uuid.uuid4(),
        now=datetime.now(UTC),
        life=_life(life_days),
        certificate_id=None if fleet is None else uuid.uuid4(),
        horizon=horizon,
        command=records.command_line(
            "certify",
            *([losses] if losses is not None else []),
            alpha=alpha,
            delta=delta,
            loss=kind.value,
            counts=counts,
            solved=solved,
            unit=unit.value,
            method=method,
            compressor=compressor,
            judge=judge,
            tau=tau,
            grader=grader,
            agreement=agreement,
            graders=None if graders is Graders.ANY else graders.value,
            registration=registration,
            calibration=calibration,
            follows=follows,
            life=life_days,
            horizon=horizon,
            fleet=fleet,
            stream=stream,
            missing=None if stream is None else missing.value,
        )
        + (" --in-order" if in_order else "")
        + (" --turns-are-independent" if turns_are_independent else ""),
        software=statistics.software(),
    )
    record = record_of(evidence, bound, issue=issue, tables=_tables(evidence, measured, ladder), warnings=measured.warnings)
    if fleet is not None and record.certificate is not None and record.certificate.certificate_id is not None:
        certificates.store(record, fleet, measured.stream)
        terminal.note(f"certificate {record.certificate.certificate_id} issued for fleet {fleet}, until {record.certificate.expires_at}")
    if plot is not None:
        statistics.draw(plot, record)
    if not as_json and record.certificate is not None:
        terminal.show(record.certificate.statement)
    records.finish(terminal, record, out, as_json=as_json)


def _check_plot(plot: Path | None) -> None:
    """Refuse what cannot be drawn before anything is computed."""
    if plot is not None:
        from winnow.cli.monitor_plot import check

        check(plot)


def _life(days: float) -> timedelta:
    """The life in days."""
    if not 0 < days <= 366:  # noqa: PLR2004  a leap year
        raise Unusable("a certificate lives more than 0 and at most 366 days; change --life")
    return timedelta(days=days)


def _registered(place: Path, loss: Loss, alpha: float, delta: float, unit: Unit, method: str | None) -> int:
    """The registered n, where everything else that was registered is what is asked for now."""
    from winnow.assurance.certificates import Terms
    from winnow.contracts.evaluation import EvaluationKind, read_record

    record = read_record(records.read_bytes(str(place)))
    said = record.subject.parameters
    n = said.get("n")
    if record.kind is not EvaluationKind.PLAN or not isinstance(n, int) or isinstance(n, bool):
        raise Unusable(f"{place}: no registration; make one with `winnow plan register`")
    now = Terms(loss=loss, alpha=alpha, delta=delta, unit=unit, method=method, n=n)
    if said.get("registration_sha256") != now.sha256():
        raise Unusable(
            f"{place}: other terms were registered (loss {said.get('loss')}, alpha {said.get('alpha')}, delta {said.get('delta')}, unit "
            f"{said.get('unit')}, method {said.get('method')}); a certificate keeps to what was registered"
        )
    return n


def _record(place: Path, kind: "EvaluationKind", made_by: str) -> "EvaluationRecord":
    """A record of this kind."""
    from winnow.contracts.evaluation import read_record

    record = read_record(records.read_bytes(str(place)))
    if record.kind is not kind:
        raise Unusable(f"{place}: no {kind.value}; make one with `{made_by}`")
    return record


def _measure(terms: "Terms", said: _Origin, graders: Graders, order: Order) -> Measured:
    """The losses, from the one place that was named."""
    if sum(one is not None for one in (said.file, said.counts, said.stream)) != 1:
        raise Unusable("give the losses in one way: a file, --counts K/N, or --stream with --fleet")
    if said.counts is not None:
        return from_counts(said.counts, terms.loss, terms.unit, said.solved)
    if said.stream is not None:
        if said.fleet is None:
            raise Unusable("--stream needs --fleet")
        return from_stream(said.fleet, said.stream, terms.loss, said.missing, terms.n)
    return from_file(said.file or "-", terms.loss, graders, order, terms.n)


def _tables(evidence: "Evidence", measured: Measured, calibration: "EvaluationRecord | None") -> "Sequence[Table]":
    """All bounds beside the one that counts, the ladder that led here, and how the bound carries over to held-out domains."""
    from winnow.assurance import methods
    from winnow.assurance.samples import InvalidSample
    from winnow.contracts.evaluation import Table

    rows: list[tuple[str, str, float, str]] = []
    for one in methods.METHODS.values():
        try:
            rows.append((one.name, one.guarantee.value, methods.upper(evidence.sample, evidence.terms.delta, one.name), one.words))
        except InvalidSample:  # not for this type, or it needs an order that was not registered
            continue
    tables = [
        Table(
            name="bounds",
            title="Upper bounds by every method that fits",
            columns=("method", "guarantee", "upper bound", "what it is"),
            rows=tuple(rows),
            note=f"The certificate rests on {evidence.terms.name} alone; choosing among them after the fact would void it.",
        )
    ]
    sample, delta = evidence.sample, evidence.terms.delta
    if evidence.terms.name in _ENUMERABLE and sample.n <= MOST_ENUMERATED:
        tables.append(_coverage(sample.rate, sample.n, delta, evidence.terms.name))
    if calibration is not None:
        tables += [table for table in calibration.tables if table.name in {"levels", "crc"}]
    domains = measured.units.domains() if measured.units is not None else []
    if len(domains) > 1 and evidence.sample.type is LossType.BINARY and evidence.terms.loss.type is LossType.BINARY:
        tables += _transfer(evidence, domains)
    return tables


def _coverage(rate: float, n: int, delta: float, name: str) -> "Table":
    """The two events that are called coverage, at a true risk of the observed rate."""
    from winnow.assurance import bounds, transfer
    from winnow.contracts.evaluation import Table

    bound = bounds.exact if name == "exact" else bounds.hoeffding_bentkus
    half = n // 2
    rows = (
        ("P(true risk <= U)", n, transfer.covers(rate, n, delta, bound), f"the guarantee: at least {1 - delta:g}"),
        (
            "P(rate of a fresh half <= U of the other)",
            half,
            transfer.fresh_sample(rate, half, delta, bound),
            "another event, with test noise",
        ),
    )
    return Table(
        name="coverage",
        title="Two events, if the true risk were the observed rate",
        columns=("event", "units of the bound", "probability", "what it is"),
        rows=rows,
        note="A tighter valid bound does worse on the second; checking a fresh half is no test of validity.",
    )


def _transfer(evidence: "Evidence", domains: Sequence[tuple[str, Any]]) -> "list[Table]":
    """Leave one domain out, beside random blocks of the same sizes."""
    import numpy as np

    from winnow.assurance import losses, transfer
    from winnow.contracts.evaluation import Table

    samples = [(name, losses.of_outcomes(evidence.terms.loss, tasks)) for name, tasks in domains]
    counted = [transfer.Domain(name=name, k=sample.k, n=sample.n) for name, sample in samples if sample.n]
    if len(counted) < 2:  # noqa: PLR2004  one to hold out
        return []
    found = transfer.leave_one_out(counted, delta=evidence.terms.delta, rng=np.random.default_rng(0), permutations=PERMUTATIONS)
    note = (
        f"{found.held} of {len(counted)} held ({found.coverage:.1%}); random blocks of these sizes hold in {found.control:.1%}: read the "
        f"one against the other. Dispersion p = {found.p_dispersion:.3f} over {PERMUTATIONS} random partitions."
    )
    rows = tuple((r.domain.name[:200], r.domain.n, r.domain.k, r.bound, r.held, r.control, r.p_shift, r.detectable) for r in found.rows)
    columns = ("domain", "n", "losses", "bound from the others", "held", "control", "p of shift", "detectable rate")
    return [Table(name="domains", title="Each domain held out once", columns=columns, rows=rows, note=note)]
