"""`winnow plan`: how much traffic a certificate or an alarm takes, and the terms of a certificate, registered before the first look."""

import math
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.assurance.designs import DEFAULT, METHODS
from winnow.assurance.kinds import Loss, Unit
from winnow.cli import records, statistics
from winnow.cli.terminal import Terminal
from winnow.contracts.errors import Permanent

if TYPE_CHECKING:
    from winnow.assurance.planning import Delay
    from winnow.contracts.evaluation import Cell, EvaluationRecord, Metric, Table

#: Points of a power curve.
CURVE_POINTS = 60

Alpha = Annotated[float, typer.Option(metavar="A", help="Risk budget.")]
Delta = Annotated[float, typer.Option(metavar="D", help="Error budget.")]
PerDay = Annotated[float | None, typer.Option(metavar="N", help="Units sampled a day: also say how many days.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the record (JSON), Markdown and HTML.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the curve into an .svg or .png file.")]
AsJson = Annotated[bool, typer.Option("--json", help="The record on standard output, nothing else.")]


class Unplannable(Permanent):
    """The plan makes no sense; the text says what to change."""


def group() -> typer.Typer:
    """The commands of `winnow plan`."""
    made = typer.Typer(help="How many units a certificate or an alarm takes.", no_args_is_help=True)
    made.command("certificate")(certificate)
    made.command("monitor")(monitor)
    made.command("register")(register)
    return made


def certificate(
    *,
    alpha: Alpha,
    true: Annotated[float, typer.Option(metavar="P", help="The risk that is expected; 0 for none.")],
    delta: Delta = 0.05,
    power: Annotated[float, typer.Option(metavar="B", help="Certify with this probability where the risk is P.")] = 0.9,
    per_day: PerDay = None,
    out: Out = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Count the units for a certificate by the exact test, and beside it by the published one; by enumeration, no approximation.

    Power over n is a saw-tooth: `first` is the smallest n that has it, `stays` the smallest from which every n does.

    Examples:  winnow plan certificate --alpha .1 --true .05 --per-day 40

    winnow plan certificate --alpha .05 --true 0 --plot power.svg
    """
    from winnow.assurance import planning, pvalues
    from winnow.contracts.evaluation import Metric, Table

    terminal = Terminal()
    _check_plot(plot)
    sizes = {
        name: planning.certificate_size(true, alpha, delta=delta, power=power, test=test)
        for name, test in (("exact", pvalues.exact), ("hb", pvalues.hoeffding_bentkus))
    }
    exact = sizes["exact"]
    rows = tuple((name, size.first, size.stays, size.allowed, size.without_loss) for name, size in sizes.items())
    units = sorted({max(1, round(2 * exact.stays * step / CURVE_POINTS)) for step in range(1, CURVE_POINTS + 1)})
    curve = tuple((n, planning.certificate_power(true, n, alpha, delta=delta)) for n in units)
    tables = (
        Table(
            name="sizes",
            title="Units for a certificate",
            columns=("test", "first", "stays", "losses allowed at stays", "units without any loss"),
            rows=rows,
        ),
        Table(name="power", title="P(certificate)", columns=("units", "share"), rows=curve, note="exact test"),
    )
    words = f"{exact.stays} units show a risk of at most {alpha:g} with probability {power:g}, where it is {true:g}"
    metrics = (Metric(name="units", value=exact.stays, n=0, unit="units", method="exact test, smallest n from which the power stays"),)
    record = _record(
        words + _days(exact.stays, per_day),
        metrics,
        tables,
        {"alpha": alpha, "delta": delta, "true": true, "power": power, "method": "exact"},
        records.command_line("plan", "certificate", alpha=alpha, true=true, delta=delta, power=power, per_day=per_day),
    )
    _finish(terminal, record, out, plot, as_json=as_json)


def monitor(  # noqa: PLR0913  the options of a command
    *,
    alpha: Alpha,
    factor: Annotated[float, typer.Option(metavar="X", help="The shift to catch, as a multiple of alpha.")],
    delta: Delta = 0.05,
    healthy: Annotated[float | None, typer.Option(metavar="Q", help="Risk before the shift; left out: alpha/2.")] = None,
    after: Annotated[int, typer.Option(min=0, max=200_000, metavar="NU", help="Healthy units before it.")] = 1_000,
    method: Annotated[str, typer.Option(metavar="NAME", help=f"Which bets: {', '.join(METHODS)}.")] = DEFAULT,
    runs: Annotated[int, typer.Option(min=20, max=20_000, help="Simulated runs.")] = 1_500,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 0,
    per_day: PerDay = None,
    out: Out = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Count the units until the monitor sees a shift, nine times in ten; simulated, with the shipped table and a lower limit beside.

    Examples:  winnow plan monitor --alpha .1 --factor 2 --per-day 40

    winnow plan monitor --alpha .05 --factor 1.5 --after 10000 --json
    """
    import numpy as np

    from winnow.assurance import planning
    from winnow.assurance.config import MonitorConfig
    from winnow.contracts.evaluation import Metric, Table

    terminal = Terminal()
    _check_plot(plot)
    config = MonitorConfig(alpha=alpha, delta=delta, method=method)
    risk = alpha / 2 if healthy is None else healthy
    found = planning.simulated(config, healthy=risk, factor=factor, nu=after, rng=np.random.default_rng(seed), runs=runs)
    rows = [_delay_row(found.delay)]
    known = planning.tabulated(alpha, factor, after)
    if known is not None and delta == 0.05 and math.isclose(risk, alpha / 2):  # noqa: PLR2004  the table's own delta
        rows.append(_delay_row(known))
    least = planning.least_delay(alpha, factor, delta=delta)
    tables = (
        Table(
            name="delays",
            title=f"Units from a shift to {factor:g} times {alpha:g} to the alarm",
            columns=("source", "mean", "p50", "p90", "p95"),
            rows=tuple(rows),
            note=f"No monitor with this error budget has a mean below {least:.0f} units. {found.early} of {runs} runs alarmed before the "
            f"shift, {found.undetected} not within {found.cap} units of it.",
        ),
        Table(name="power", title="share of runs with an alarm", columns=("units", "share"), rows=_shares(found.delays)),
    )
    p90 = math.ceil(found.delay.p90)
    words = f"A rise of the risk from {risk:g} to {factor * alpha:g} is caught within {p90} units, nine times in ten"
    metrics: list[Metric] = [
        Metric(name="delay_p90", value=found.delay.p90, n=runs, unit="units", method="simulated"),
        Metric(name="delay_mean", value=found.delay.mean, n=runs, unit="units", method="simulated"),
        Metric(name="least_mean_delay", value=least, n=0, unit="units", method="ln(1/delta)/KL"),
        Metric(name="early_alarms", value=found.early / runs, n=runs, method="share of runs that alarmed before the shift"),
    ]
    record = _record(
        words + _days(p90, per_day),
        metrics,
        tables,
        {"alpha": alpha, "delta": delta, "healthy": risk, "factor": factor, "after": after, "method": method, "runs": runs},
        records.command_line(
            "plan", "monitor", alpha=alpha, factor=factor, delta=delta, healthy=healthy, after=after, method=method, runs=runs, seed=seed,
            per_day=per_day,
        ),
        seed=seed,
    )  # fmt: skip
    _finish(terminal, record, out, plot, as_json=as_json)


def register(
    *,
    alpha: Alpha,
    n: Annotated[int, typer.Option("--n", min=20, help="Units that will be looked at, once.")],
    delta: Delta = 0.05,
    loss: Annotated[Loss, typer.Option(help="What is a loss.")] = Loss.HARM_ALL,
    unit: Annotated[Unit, typer.Option(help="What one loss belongs to.")] = Unit.TRAJECTORY,
    method: Annotated[str | None, typer.Option(metavar="NAME", help="Bound; left out: the default of the loss's type.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the registration.")] = None,
    as_json: AsJson = False,
) -> None:
    """Register the terms of a certificate before the first look; `winnow certify --registration` then keeps to them.

    Examples:  winnow plan register --alpha .1 --n 300 --out registration
    """
    from winnow.assurance.certificates import Terms

    terms = Terms(loss=loss, alpha=alpha, delta=delta, unit=unit, method=method, n=n)
    record = _record(
        f"Registered: {n} units, {loss.value}, alpha {alpha:g}, delta {delta:g}",
        (),
        (),
        {
            "loss": loss.value,
            "alpha": alpha,
            "delta": delta,
            "unit": unit.value,
            "method": terms.name,
            "n": n,
            "registration_sha256": terms.sha256(),
        },
        records.command_line("plan", "register", alpha=alpha, n=n, delta=delta, loss=loss.value, unit=unit.value, method=method),
    )
    _finish(Terminal(), record, out, None, as_json=as_json)


def _record(
    title: str,
    metrics: "Sequence[Metric]",
    tables: "Sequence[Table]",
    parameters: "dict[str, Cell]",
    command: str,
    *,
    seed: int | None = None,
) -> "EvaluationRecord":
    """A plan as a record. It has no gates: a plan passes nothing."""
    from winnow.contracts.evaluation import EvaluationKind, EvaluationRecord, Exposure, Subject

    return EvaluationRecord(
        id=uuid.uuid4(),
        kind=EvaluationKind.PLAN,
        created_at=datetime.now(UTC),
        title=title,
        command=command,
        software=statistics.software(),
        subject=Subject(kind="plan", name="certificate or monitor", parameters=parameters),
        exposure=Exposure.NOT_FITTED,
        seed=seed,
        metrics=tuple(metrics),
        tables=tuple(tables),
    )


def _finish(terminal: Terminal, record: "EvaluationRecord", out: Path | None, plot: Path | None, *, as_json: bool) -> None:
    """Draw, write and show a plan."""
    if plot is not None:
        statistics.draw(plot, record)
    if as_json:
        records.finish(terminal, record, out, as_json=True)
        return
    if out is not None:
        for path in records.write(record, out):
            terminal.note(f"written: {path}")
    terminal.show(f"{record.title}.")
    for one in record.tables:
        if one.name != "power":
            terminal.show(records.rich(one))
            if one.note:
                terminal.show(one.note)


def _check_plot(plot: Path | None) -> None:
    """Refuse what cannot be drawn before anything is computed."""
    if plot is not None:
        from winnow.cli.monitor_plot import check

        check(plot)


def _days(units: int, per_day: float | None) -> str:
    """What that is in days, and what halving the sampling costs."""
    if per_day is None:
        return ""
    if not 0 < per_day < math.inf:
        raise Unplannable("--per-day must be a positive number of units")
    days = math.ceil(units / per_day)
    return f": {days} days at {per_day:g} a day, {math.ceil(2 * units / per_day)} at half of that"


def _delay_row(delay: "Delay") -> tuple[str, float, float | None, float, float | None]:
    """A delay as a row."""
    return (delay.source, round(delay.mean, 1), delay.p50, delay.p90, delay.p95)


def _shares(delays: Sequence[int]) -> tuple[tuple[int, float], ...]:
    """The share of runs with an alarm by so many units."""
    places = sorted({round(i * (len(delays) - 1) / CURVE_POINTS) for i in range(CURVE_POINTS + 1)})
    return tuple((delays[place], (place + 1) / len(delays)) for place in places)
