"""`winnow streams`: what the drift monitor watches, with which evidence, and a replay of any stream from its ledger."""

import math
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from winnow.cli.connection import in_transaction, operator
from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal, cell, minute, one_line, plain, table
from winnow.contracts.errors import NotFound, Permanent

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.assurance.ledger import Fate, Unit
    from winnow.storage.epochs import StoredEpoch
    from winnow.storage.overview import StreamView
    from winnow.storage.replay import Replayed

Fleet = Annotated[str, typer.Option("--fleet", help="The fleet.")]
Json = Annotated[bool, typer.Option("--json", help="One line of JSON a stream.")]
Name = Annotated[str, typer.Argument(metavar="STREAM", help="The stream.")]

_STYLES = {"ok": "green", "warn": "yellow", "alarm": "bold red", "held": "bold red", "recovered": "cyan"}


def group() -> typer.Typer:
    """The commands of `winnow streams`."""
    made = typer.Typer(help="Streams of losses that the drift monitor watches.", invoke_without_command=True)
    made.callback()(_default)
    made.command("list")(listed)
    made.command("show")(show)
    made.command("set")(set_)
    made.command("replay")(replay)
    return made


def _default(context: typer.Context) -> None:
    """`winnow streams` alone lists all of them."""
    if context.invoked_subcommand is None:
        listed(None, as_json=False)


def listed(
    fleet: Annotated[str | None, typer.Option("--fleet", help="One fleet; left out: all.")] = None,
    *,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw evidence and alarm levels into an .svg or .png file.")] = None,
    as_json: Json = False,
) -> None:
    """List streams: status, evidence and the level that is an alarm, units, missing grades, verdict."""
    from winnow.storage import overview

    if plot is not None:
        from winnow.cli.monitor_plot import check

        check(plot)

    async def work(tx: "AsyncConnection") -> "list[StreamView]":
        return await overview.streams(tx, fleet)

    terminal, found = Terminal(), in_transaction(work)
    if plot is not None:
        from winnow.cli.overview_plot import Meter, meters

        meters(plot, [Meter(f"{s.fleet} {s.stream}", s.status, s.log_evidence, math.log(s.level) if s.level else None) for s in found])
    if as_json:
        for one in found:
            terminal.json(_value(one))
        return
    rows = table("fleet", "stream", "status", "verdict", "alpha", "evidence", "alarm at", "units", "missing", "late", "guarantee")
    for one in found:
        rows.add_row(
            cell(one.fleet),
            cell(one.stream),
            cell(one.status, _STYLES.get(one.status, "dim")),
            cell(one.verdict),
            cell("" if one.alpha is None else f"{one.alpha:g}"),
            cell(_power(one.log_evidence)),
            cell(_power(None if one.level is None else math.log(one.level))),
            cell(one.folded),
            cell(f"{one.missing} ({one.missing_share:.1%})" if one.missing else "0"),
            cell(one.late),
            cell(one.guarantee),
        )
    terminal.show(rows if found else "no streams yet; a stream is made with its first observation or closed run")
    for one in found:
        if one.status == "held":
            terminal.show(_ways_out(one.fleet, one.stream))


def show(
    name: Name,
    *,
    fleet: Fleet,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the evidence of the current epoch into an .svg or .png file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show one stream: its epochs, what each may spend of the error budget, and their alarms."""
    from winnow.storage import epoch_units, epochs, overview
    from winnow.storage.keys import StreamKey

    if plot is not None:
        from winnow.cli.monitor_plot import check

        check(plot)

    async def work(tx: "AsyncConnection") -> "tuple[StreamView | None, list[epochs.StoredEpoch], list[tuple[Unit, Fate]] | None]":
        found = [s for s in await overview.streams(tx, fleet) if s.stream == name]
        known = await epochs.of(tx, StreamKey(fleet, name))
        units = await epoch_units.load(tx, StreamKey(fleet, name), known[-1].epoch) if plot is not None and known else None
        return (found[0] if found else None), known, units

    view, known, units = in_transaction(work)
    if view is None:
        raise _unknown(fleet, name)
    if plot is not None:
        if not units:
            raise Permanent(f"the current epoch of {plain(name, 80)!r} has no units, or more than {epoch_units.MOST}; leave --plot out")
        _draw(plot, name, known[-1], units)
    terminal = Terminal()
    if as_json:
        terminal.json(_value(view) | {"epochs": [_epoch(e) for e in known]})
        return
    terminal.show(
        f"{one_line(name)} of fleet {fleet}: {view.status}, {view.verdict}; evidence {_power(view.log_evidence)}, {view.folded} units"
        f" folded, {view.missing} missing, {view.late} late, {view.refused} refused; family {view.family}"
    )
    if view.status == "held":
        terminal.show(_ways_out(fleet, name))
    rows = table("epoch", "from", "since", "because", "share of delta", "alarm", "evidence")
    for e in known:
        alarm = "" if e.alarm_at is None else f"{minute(e.alarm_at)} at unit {e.alarm_seq} ({e.alarm_rule})"
        share = e.epoch.config.delta * e.epoch.config.weight
        rows.add_row(
            cell(e.epoch.number), cell(e.epoch.from_seq), cell(minute(e.started_at)), cell(e.because, most=80), cell(f"{share:.3g}"),
            cell(alarm), cell(_power(e.alarm_evidence)),
        )  # fmt: skip
    terminal.show(rows)


def _draw(place: Path, name: str, epoch: "StoredEpoch", units: "list[tuple[Unit, Fate]]") -> None:
    """Draw what an epoch folded, up to its alarm."""
    from winnow.assurance.ledger import folded_loss
    from winnow.cli.monitor_plot import Drawn, draw

    counted = [(loss, unit.probability) for unit, fate in units if (loss := folded_loss(epoch.epoch, unit, fate)) is not None
               and (epoch.alarm_seq is None or unit.seq <= epoch.alarm_seq)]  # fmt: skip
    draw(place, epoch.epoch.config, [Drawn(one_line(name), [loss for loss, _ in counted], [p for _, p in counted])])


def set_(  # noqa: PLR0913  each is a setting of its own
    name: Name,
    *,
    fleet: Fleet,
    alpha: Annotated[float | None, typer.Option(help="Risk budget.")] = None,
    paired: Annotated[bool, typer.Option("--paired", help="Losses are differences in [-1, 1].")] = False,
    binary: Annotated[bool, typer.Option("--binary", help="Losses are 0 or 1 (paired: -1, 0, 1), nothing else.")] = False,
    warn_alpha: Annotated[float | None, typer.Option(help="Budget of the warn level, below alpha.")] = None,
    missing: Annotated[str | None, typer.Option(help="A unit without a grade: fold (as a loss of 1) or skip.")] = None,
    watermark_s: Annotated[float | None, typer.Option(help="Seconds that a unit waits for its grade.")] = None,
    min_probability: Annotated[float | None, typer.Option(help="Smallest probability with which a unit is drawn.")] = None,
    method: Annotated[str | None, typer.Option(help="Bets of the monitor by name.")] = None,
) -> None:
    """Set how a stream is watched, before or after its first unit. A change opens a new epoch with its next unit.

    What is left out is as it was. The first configuration of a stream fixes nothing about others.
    """
    from pydantic import ValidationError

    from winnow.contracts.envelope import explain
    from winnow.contracts.streams import MISSING_PREFIX, StreamConfig
    from winnow.storage import audit, fleets, raw, streams

    given = {
        "alpha": alpha, "warn_alpha": warn_alpha, "missing": missing, "watermark_s": watermark_s, "min_probability": min_probability,
        "method": method, "lo": -1 if paired else None, "binary": binary or None,
    }  # fmt: skip
    said = {k: v for k, v in given.items() if v is not None}
    if name.startswith(MISSING_PREFIX) and set(said) - {"alpha", "warn_alpha"}:
        raise Permanent("of a stream of missing grades only alpha and warn_alpha can be set")

    async def work(tx: "AsyncConnection") -> StreamConfig:
        now = datetime.now(UTC)
        if fleet not in await fleets.load(tx, [fleet]):
            msg = f"there is no fleet {plain(fleet, 80)!r}; `winnow fleet show` lists them"
            raise NotFound(msg)
        row = await raw.fetch_one(tx, "SELECT config FROM streams WHERE fleet = $1 AND stream = $2 FOR NO KEY UPDATE", fleet, name)
        try:
            config = StreamConfig.model_validate({**(row["config"] if row else {}), **said})
        except ValidationError as exc:
            raise Permanent(explain(exc)) from None
        await streams.register(tx, fleet, name, config=config.model_dump(exclude_none=True, mode="json"), weight=None, now=now)
        await audit.add(tx, action="stream.set", by=operator(), now=now, fleet=fleet, details={"stream": name, **said})
        return config

    config = in_transaction(work)
    Terminal().show(f"{one_line(name)}: {config.model_dump_json(exclude_none=True)}")


def replay(
    name: Name,
    *,
    fleet: Fleet,
    repair: Annotated[bool, typer.Option("--repair", help="Write what the ledger says where the state differs or cannot be read.")] = False,
    as_json: Json = False,
) -> None:
    """Fold a stream's whole ledger again and compare with the stored state, to the bit. Exit code 1 where they differ.

    No clock is asked: the ledger says which units were folded, and which were missing or refused.
    """
    from winnow.storage import audit, replay
    from winnow.storage.keys import StreamKey

    async def work(tx: "AsyncConnection") -> "Replayed":
        now = datetime.now(UTC)
        came = await replay.replay(tx, StreamKey(fleet, name), now=now, repair=repair)
        if repair:
            details = {"stream": name, "identical": came.identical}
            await audit.add(tx, action="stream.repair", by=operator(), now=now, fleet=fleet, details=details)
        return came

    came, terminal = in_transaction(work), Terminal()
    if as_json:
        terminal.json(
            {
                "fleet": fleet, "stream": name, "epoch": came.epoch, "units": came.units, "log_e": came.log_evidence, "status": came.status,
                "identical": came.identical, "repaired": repair and not came.identical,
            }
        )  # fmt: skip
    else:
        same = "identical to the stored state, to the bit" if came.identical else "NOT what is stored"
        terminal.show(f"{one_line(name)}: {came.units} units, epoch {came.epoch}, evidence {_power(came.log_evidence)}, {same}")
    if not came.identical and not repair:
        terminal.fail("the state differs from its ledger; `--repair` writes what the ledger says", ExitCode.FAILURE)


def _unknown(fleet: str, name: str) -> NotFound:
    return NotFound(f"fleet {plain(fleet, 80)!r} has no stream {plain(name, 80)!r}; `winnow streams list` shows all")


def _ways_out(fleet: str, name: str) -> str:
    """What to do about a stream that is not folded any more."""
    return (
        f"{one_line(name)} of fleet {fleet} is not watched: `winnow alerts --fleet {fleet}` says why and what mends it; where its state"
        f" cannot be read, `winnow streams replay {shlex.quote(one_line(name))} --fleet {fleet} --repair`, then `winnow release {fleet}`"
    )


def _power(log_evidence: float | None) -> str:
    """An e-value as a power of ten: the evidence meter."""
    return "" if log_evidence is None else f"10^{log_evidence / math.log(10):+.2f}"


def _value(one: "StreamView") -> dict[str, Any]:
    """The JSON form of a stream."""
    return {name: getattr(one, name) for name in one.__dataclass_fields__} | {
        "updated_at": one.updated_at.isoformat() if one.updated_at else None,
        "missing_share": one.missing_share,
        "log10_evidence": None if one.log_evidence is None else one.log_evidence / math.log(10),
    }


def _epoch(e: Any) -> dict[str, Any]:  # noqa: ANN401  a StoredEpoch, whose module is loaded only where it is needed
    """The JSON form of an epoch."""
    return {
        "epoch": e.epoch.number, "from_seq": e.epoch.from_seq, "started_at": e.started_at.isoformat(), "because": e.because,
        "config": e.epoch.config.parameters(), "signature": e.epoch.signature._asdict(),
        "error_share": e.epoch.config.delta * e.epoch.config.weight, "alarm_seq": e.alarm_seq,
        "alarm_at": e.alarm_at.isoformat() if e.alarm_at else None, "alarm_rule": e.alarm_rule, "alarm_log_e": e.alarm_evidence,
    }  # fmt: skip
