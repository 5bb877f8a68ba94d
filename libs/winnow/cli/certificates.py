"""`winnow certificates`: those of a fleet; and how `winnow certify` binds and stores one."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli import statistics
from winnow.cli.connection import in_transaction, operator
from winnow.cli.measured import Measured, Unusable
from winnow.cli.terminal import Terminal, cell, minute, table
from winnow.contracts.errors import NotFound

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.assurance.certificates import Bound
    from winnow.contracts.evaluation import EvaluationRecord, Grader
    from winnow.storage.certificates import Certificate
    from winnow.storage.fleets import Fleet, Point

FleetName = Annotated[str, typer.Argument(metavar="FLEET", help="The fleet.")]


def group() -> typer.Typer:
    """The commands of `winnow certificates`."""
    made = typer.Typer(help="Certificates of a fleet.", no_args_is_help=True)
    made.command("list")(listed)
    made.command("revoke")(revoke)
    return made


def listed(
    fleet: FleetName,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a certificate, with its whole record.")] = False,
) -> None:
    """List a fleet's certificates, newest first: live, expired and revoked ones."""
    from winnow.storage import certificates

    async def work(tx: "AsyncConnection") -> "list[Certificate]":
        return await certificates.listed(tx, fleet)

    terminal = Terminal()
    found = in_transaction(work)
    now = datetime.now(UTC)
    if as_json:
        for one in found:
            terminal.json({"certificate_id": one.certificate_id, "state": _state(one, now), "record": one.record})
        return
    rows = table("certificate", "state", "judge", "tau", "bound", "alpha", "n", "method", "issued", "expires", "because")
    for one in found:
        facts = (one.certificate_id, _state(one, now), one.judge, one.tau, f"{one.bound:.4f}", one.alpha, one.n, one.method)
        rows.add_row(*(cell(v) for v in (*facts, minute(one.issued_at), minute(one.expires_at), one.revoked_because or "")))
    terminal.show(rows if found else f"fleet {fleet} has no certificate; make one with `winnow certify --fleet {fleet}`")


def revoke(fleet: FleetName, *, because: Annotated[str, typer.Option(help="Why; it goes into the audit log.")]) -> None:
    """Revoke all live certificates of a fleet. Where its operating point requires one, nothing is pruned until the next."""
    from winnow.storage import certificates

    async def work(tx: "AsyncConnection") -> list[object]:
        return list(await certificates.revoke(tx, fleet, by=operator(), because=because, now=datetime.now(UTC)))

    revoked = in_transaction(work)
    if not revoked:
        msg = f"fleet {fleet[:80]} has no live certificate"
        raise NotFound(msg)
    Terminal().show(f"revoked: {', '.join(map(str, revoked))}")


def _state(one: "Certificate", now: datetime) -> str:
    """What a certificate is now."""
    if one.revoked_at is not None:
        return "superseded" if (one.revoked_because or "").startswith("superseded by ") else "revoked"
    return "live" if one.issued_at <= now < one.expires_at else "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the options of `winnow certify` say that a certificate is bound to; None where they do not."""

    compressor: str | None
    judge: str | None
    tau: float | None
    grader: str | None
    agreement: float | None
    fleet: str | None
    #: Record of the certificate before, and of the calibration that chose the operating point.
    follows: "EvaluationRecord | None"
    calibration: "EvaluationRecord | None"


def bound(measured: Measured, said: Said) -> "Bound":
    """What the certificate is bound to; from the fleet's operating point where that was not said."""
    from winnow.assurance.certificates import Bound, record_sha256
    from winnow.contracts.evaluation import Compressor, Subject

    point, point_id = (None, None) if said.fleet is None else _point(said.fleet)
    if point is not None and said.tau is not None and said.tau != point.tau:
        raise Unusable(f"fleet {said.fleet} serves tau = {point.tau:g}: a certificate for {said.tau:g} would certify what is not served")
    name, version = statistics.named("judge", said.judge or (point.judge if point is not None else "not stated"))
    if point is not None and name != point.judge:
        raise Unusable(f"fleet {said.fleet} is served by judge {point.judge}: a certificate for {name} would certify what is not served")
    if point_id is not None and measured.operating_point not in {None, point_id}:
        raise Unusable(
            f"the stream's units ran under operating point {measured.operating_point}, fleet {said.fleet} serves {point_id}: sample anew"
        )
    maker, maker_version = (
        statistics.named("compressor", said.compressor) if said.compressor else (measured.compressor or "not stated", None)
    )
    chosen = str(point_id) if point_id is not None else None if said.calibration is None else said.calibration.subject.name
    return Bound(
        compressor=Compressor(name=maker, version=maker_version),
        judge=Subject(kind="judge", name=name, version=version or _judge_version(name)),
        grader=_grader(measured, said),
        data=measured.data,
        tau=point.tau if point is not None else said.tau,
        operating_point=chosen,
        fleet=said.fleet,
        previous_sha256=None if said.follows is None else record_sha256(said.follows),
        calibration_sha256=None if said.calibration is None else record_sha256(said.calibration),
        stream=measured.stream,
        seq=(measured.first, measured.last) if measured.stream is not None else None,
    )


def _grader(measured: Measured, said: Said) -> "Grader":
    """Who measured: as the options say, else as the stream does."""
    from winnow.cli.eval import grader_of
    from winnow.contracts.evaluation import Grader, GraderKind

    if said.fleet is not None and said.grader is None and not measured.graders:
        raise Unusable("a certificate that is issued says who measured: --grader human, model, rule or synthetic, with :NAME")
    names = ", ".join(measured.graders)[:200]
    who = grader_of(said.grader) if said.grader else Grader(kind=GraderKind.UNSTATED, name=names or None)
    if said.agreement is None:
        return who
    return who.model_copy(update={"agreement": said.agreement, "agreement_measure": "share of equal A/A re-runs"})


def _point(fleet: str) -> "tuple[Point, int]":
    """The fleet's operating point and its id."""
    from winnow.storage import fleets

    async def work(tx: "AsyncConnection") -> "dict[str, Fleet]":
        return dict(await fleets.load(tx, [fleet]))

    found = in_transaction(work)
    if fleet not in found:
        msg = f"there is no fleet {fleet[:80]!r}; see `winnow fleet show`"
        raise NotFound(msg)
    current = found[fleet].operating_point
    return current.point, current.id


def _judge_version(name: str) -> str | None:
    """Version of a judge that runs here; None for others."""
    if name != "local":
        return None
    from winnow.judging.local import LocalJudge

    return LocalJudge().id.version


def store(record: "EvaluationRecord", fleet: str, stream: str | None) -> None:
    """Store the certificate; older ones for the same judge and threshold are superseded in the same transaction."""
    from winnow.storage import certificates as stored

    certificate = record.certificate
    if certificate is None or certificate.certificate_id is None or certificate.expires_at is None or certificate.bound is None:
        return
    body = record.model_dump(mode="json")
    if stream is not None:
        body["stream"] = stream  # an alarm of this stream revokes it; without the name, any of the fleet's does
    grader, compressor = record.grader, record.compressor
    made = stored.Certificate(
        certificate_id=certificate.certificate_id,
        fleet=fleet,
        compressor=" ".join(word for word in (compressor.name, compressor.version) if word) if compressor else "not stated",
        judge=certificate.judge.name if certificate.judge else "not stated",
        judge_version=(certificate.judge.version if certificate.judge else None) or "not stated",
        tau=certificate.tau if certificate.tau is not None else 0.0,
        grader=":".join(word for word in (grader.kind.value, grader.name) if word) if grader else "unstated",
        data_sha256=record.data[0].sha256,
        method=f"{certificate.method} ({record.subject.parameters.get('guarantee')})",
        alpha=certificate.alpha,
        delta=certificate.delta,
        n=certificate.n,
        losses=certificate.k or 0.0,
        denominator=certificate.denominator,
        bound=certificate.bound,
        record=body,
        issued_at=certificate.issued_at,
        expires_at=certificate.expires_at,
    )

    async def work(tx: "AsyncConnection") -> None:
        await stored.supersede(tx, made, by=operator())
        await stored.issue(tx, made, by=operator())

    in_transaction(work)
