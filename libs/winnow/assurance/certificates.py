"""Certificates: what was shown about a risk, in words that claim no more, with an end and with whatever revokes them.

A certificate is the record form of every evaluation (`contracts.evaluation`). It binds data, unit, denominator, loss, method, alpha, delta,
compressor, judge and grader; it holds for that and nothing else.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from winnow.assurance import losses, methods
from winnow.assurance.kinds import Loss, LossType, Unit
from winnow.assurance.methods import METHODS_VERSION, Guarantee
from winnow.assurance.samples import InvalidSample, Sample, probability
from winnow.contracts.evaluation import (
    Cell,
    CertificateVerdict,
    Certified,
    Compressor,
    DataFingerprint,
    Direction,
    EvaluationKind,
    EvaluationRecord,
    Exposure,
    Gate,
    Grader,
    Interval,
    Metric,
    Subject,
    Table,
)

#: Units below which nothing is certified: not even a loss-free sample of 19 shows a risk below 14 %.
FEWEST_UNITS: Final = 20
#: Longest life of a certificate. Traffic, models and prompts change; a year-old calibration says nothing about today.
LONGEST_LIFE: Final = timedelta(days=366)

ASSUMPTIONS: Final = (
    "Future units are exchangeable with the calibration traffic: same tasks, model, compressor, judge and settings.",
    "The loss is the measured outcome; what the grader cannot see is not in it.",
    "The calibration data was held out from all tuning of compressor, judge and threshold.",
    "One model and one workload; nothing follows for another.",
    "Void after drift: an alarm of the monitor revokes it.",
)
_RERUN_NOISE: Final = "Harm includes re-run noise: no second reference run tells it from what running the reference again would lose."


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is asked of the data, fixed before it is looked at."""

    loss: Loss
    alpha: float
    delta: float = 0.05
    unit: Unit = Unit.TRAJECTORY
    #: Name of the bound (see `methods`); None: the default of the declared type.
    method: str | None = None
    #: Units that will be looked at, once; None: not registered, and the certificate says so.
    n: int | None = None
    #: The caller knows that turns do not depend on each other; allowed for reading, never for a certificate that is stored.
    turns_are_independent: bool = False

    def __post_init__(self) -> None:
        """Check ranges and names."""
        probability("alpha", self.alpha)
        probability("delta", self.delta)
        methods.method(self.name)

    @property
    def name(self) -> str:
        """The method's name."""
        return self.method or methods.default(self.loss.type)

    def sha256(self) -> str:
        """Hash of the terms: registered before the first look, it shows that they were not chosen by their outcome."""
        return _sha256(
            {
                "loss": self.loss.value,
                "alpha": repr(self.alpha),
                "delta": repr(self.delta),
                "unit": self.unit.value,
                "method": self.name,
                "n": self.n,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a sample says under its terms."""

    terms: Terms
    sample: Sample
    upper: float
    #: Lower bound at the same confidence; each holds on its own.
    lower: float
    p_value: float
    verdict: CertificateVerdict
    #: The same losses over the units that the reference solves, and their bound; None where it is not known which those are.
    conditional: tuple[Sample, float] | None
    warnings: tuple[str, ...]

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee class of the bound."""
        return methods.method(self.terms.name).guarantee


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What a certificate is bound to besides its numbers."""

    compressor: Compressor
    judge: Subject
    grader: Grader
    data: DataFingerprint
    tau: float | None = None
    operating_point: str | None = None
    fleet: str | None = None
    #: Hash of the certificate that this one follows, so that none can be left out of a chain unseen.
    previous_sha256: str | None = None
    #: Hash of the calibration that chose the operating point, with its ladder and all p-values.
    calibration_sha256: str | None = None
    #: The stream that the losses were taken from, with its first and last sequence number.
    stream: str | None = None
    seq: tuple[int, int] | None = None
    exposure: Exposure = Exposure.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """The act of issuing: what a clock, a source of ids and the command line add."""

    id: UUID
    now: datetime
    #: How long the certificate lives.
    life: timedelta
    #: Its id in the fleet's table; None where it is not stored.
    certificate_id: UUID | None = None
    #: Units over which a monitor guards it.
    horizon: int | None = None
    command: str = ""
    software: Mapping[str, str] = field(default_factory=dict)


def assess(terms: Terms, sample: Sample, *, solved: Sample | None = None) -> Evidence:
    """Bound the risk and say what that amounts to: certified where the upper bound is at most alpha, breached where the lower is above it.

    `solved` are the same losses over the units that the reference solves; they are bounded beside the marginal ones.

    Raises:
        InvalidSample: the sample is of another type than the loss declares, has fewer than 20 units or another number than was registered.
    """
    if sample.type is not terms.loss.type:
        raise InvalidSample(f"{terms.loss.value} is a {terms.loss.type.value} loss, the sample was declared {sample.type.value}")
    if sample.n < FEWEST_UNITS:
        raise InvalidSample(f"{sample.n} units are too few: at least {FEWEST_UNITS} are needed (see `winnow plan certificate`)")
    if terms.n is not None and terms.n != sample.n:
        raise InvalidSample(f"{terms.n} units were registered and {sample.n} are here; a bound at another n is another look")
    warnings = [losses.check_unit(terms.unit, turns_are_independent=terms.turns_are_independent)]
    if terms.n is None:
        warnings.append("n, alpha and delta were not registered before the data was seen")
    if terms.loss in {Loss.HARM_ALL, Loss.HARM_GIVEN_FULL}:
        warnings.append(_RERUN_NOISE)
    if terms.loss is Loss.DECISION_DIVERGENCE:
        warnings.append("divergence contains the grader's own noise: report it, and budget decision_harm")
    upper = methods.upper(sample, terms.delta, terms.name)
    lower = methods.lower(sample, terms.delta, terms.name)
    verdict = CertificateVerdict.UNPROVEN
    if upper <= terms.alpha:
        verdict = CertificateVerdict.CERTIFIED
    elif lower > terms.alpha:
        verdict = CertificateVerdict.BREACHED
    return Evidence(
        terms=terms,
        sample=sample,
        upper=upper,
        lower=lower,
        p_value=methods.p_value(sample, terms.alpha, terms.name),
        verdict=verdict,
        conditional=None if solved is None else (solved, methods.upper(solved, terms.delta, terms.name)),
        warnings=tuple(w for w in warnings if w),
    )


def statement(evidence: Evidence) -> str:
    """What was shown, in plain words with its numbers."""
    terms, sample = evidence.terms, evidence.sample
    units = {Unit.TRAJECTORY: "trajectories", Unit.SESSION: "sessions", Unit.TURN: "turns"}[terms.unit]
    look = "fixed n, one look" if evidence.guarantee is Guarantee.FIXED_N else "valid at every look"
    how = f"{methods.method(terms.name).words}, {look}"
    who = f"Of the {sample.n} {units} that the reference solves" if terms.loss is Loss.HARM_GIVEN_FULL else f"Over all {sample.n} {units}"
    if sample.type is LossType.BINARY:
        said = f"{who}, {sample.k} ({_percent(sample.rate)}) {terms.loss.words}"
    else:
        said = f"{who}, the share that {terms.loss.words} is {_percent(sample.rate)} on average"
    text = (
        f"{said}; with confidence {_percent(1 - terms.delta)} the rate in the calibrated population is at most "
        f"{_percent(evidence.upper)} ({how})."
    )
    if evidence.conditional is not None:
        solved, bound = evidence.conditional
        text += f" Of the {solved.n} the reference solves: {_percent(solved.rate)}, at most {_percent(bound)}."
        text += f" Each bound holds at {_percent(1 - terms.delta)} on its own."
    return text + f" {_VERDICTS[evidence.verdict].format(alpha=_percent(terms.alpha))}"


_VERDICTS: Final = {
    CertificateVerdict.CERTIFIED: "Certified: the bound is within the budget of {alpha}.",
    CertificateVerdict.BREACHED: "Breached: the lower bound lies above the budget of {alpha}.",
    CertificateVerdict.UNPROVEN: "Unproven: the data shows neither that the budget of {alpha} is kept nor that it is broken.",
}


def record(
    evidence: Evidence,
    bound: Bound,
    *,
    issue: Issue,
    tables: Sequence[Table] = (),
    warnings: Sequence[str] = (),
) -> EvaluationRecord:
    """The certificate as an evaluation record, with one gate: the bound is at most alpha. Only a certified one has a time to expire.

    Raises:
        InvalidSample: the life is not positive or longer than a year.
    """
    if not timedelta(0) < issue.life <= LONGEST_LIFE:
        raise InvalidSample(f"a certificate lives between a moment and {LONGEST_LIFE.days} days")
    terms, sample = evidence.terms, evidence.sample
    issued = evidence.verdict is CertificateVerdict.CERTIFIED
    certified = Certified(
        certificate_id=issue.certificate_id if issued else None,
        fleet=bound.fleet,
        verdict=evidence.verdict,
        statement=statement(evidence),
        assumptions=ASSUMPTIONS,
        judge=bound.judge,
        loss=terms.loss.value,
        loss_type=sample.type.value,
        unit=terms.unit.value,
        denominator=terms.loss.denominator,
        n=sample.n,
        k=sample.total if sample.total >= 0 else None,
        values_sha256=None if sample.values is None else values_sha256(sample.values),
        method=terms.name,
        method_version=METHODS_VERSION,
        alpha=terms.alpha,
        delta=terms.delta,
        bound=evidence.upper,
        lower_bound=evidence.lower,
        tau=bound.tau,
        operating_point=bound.operating_point,
        registration_sha256=None if terms.n is None else terms.sha256(),
        horizon=issue.horizon,
        issued_at=issue.now,
        expires_at=issue.now + issue.life if issued else None,
    )
    first, last = bound.seq or (None, None)
    said: dict[str, Cell] = {
        "guarantee": evidence.guarantee.value,
        "previous_sha256": bound.previous_sha256,
        "calibration_sha256": bound.calibration_sha256,
        "stream": bound.stream,
        "first_seq": first,
        "last_seq": last,
    }
    parameters: dict[str, Cell] = {name: value for name, value in said.items() if value is not None}
    return EvaluationRecord(
        id=issue.id,
        kind=EvaluationKind.CERTIFICATE,
        created_at=issue.now,
        title=f"{evidence.verdict.value.capitalize()}: {terms.loss.value} against a budget of {_percent(terms.alpha)}",
        command=issue.command,
        software=dict(issue.software),
        data=(bound.data,),
        subject=Subject(
            kind="compressor",
            name=bound.compressor.name,
            version=bound.compressor.version,
            parameters=parameters,
        ),
        compressor=bound.compressor,
        grader=bound.grader,
        exposure=bound.exposure,
        metrics=_metrics(evidence),
        gates=(Gate.judge(metric="upper_bound", direction=Direction.AT_MOST, threshold=terms.alpha, observed=evidence.upper),),
        tables=tuple(tables),
        certificate=certified,
        warnings=(*evidence.warnings, *warnings),
    )


def _metrics(evidence: Evidence) -> tuple[Metric, ...]:
    """The figures of a certificate: rate with its bounds, the bound, p-value, and the conditional rate where it is known."""
    terms, sample = evidence.terms, evidence.sample
    how = methods.method(terms.name).words

    def interval(lower: float | None, upper: float) -> Interval:
        return Interval(lo=lower, hi=upper, level=1 - terms.delta, method=f"{how}, one-sided each ({evidence.guarantee.value})")

    made = [
        Metric(name="risk", value=sample.rate, interval=interval(evidence.lower, evidence.upper), n=sample.n, method=terms.loss.value),
        Metric(name="upper_bound", value=evidence.upper, n=sample.n, method=how),
        Metric(name="p_value", value=evidence.p_value, n=sample.n, method=f"{how}, H0: risk >= {terms.alpha}"),
    ]
    if evidence.conditional is not None:
        solved, upper = evidence.conditional
        made.append(
            Metric(
                name="risk",
                slice="reference solves",
                value=solved.rate if solved.n else None,
                interval=interval(None, upper),
                n=solved.n,
                method=Loss.HARM_GIVEN_FULL.value,
                note="" if solved.n else "the reference solves no unit",
            )
        )
    return tuple(made)


def live(certificate: Certified, now: datetime) -> bool:
    """Whether it is certified, not revoked and not expired."""
    in_time = certificate.expires_at is not None and certificate.issued_at <= now < certificate.expires_at
    return certificate.verdict is CertificateVerdict.CERTIFIED and certificate.revoked_at is None and in_time


def revoked(made: EvaluationRecord, *, at: datetime, because: str) -> EvaluationRecord:
    """The record, revoked; the first revocation stands.

    Raises:
        InvalidSample: the record is no certificate.
    """
    certificate = made.certificate
    if certificate is None:
        raise InvalidSample("the record is no certificate; there is nothing to revoke")
    if certificate.revoked_at is not None:
        return made
    return made.model_copy(update={"certificate": certificate.model_copy(update={"revoked_at": at, "revoked_because": because})})


def record_sha256(made: EvaluationRecord) -> str:
    """Hash of a record, for the next certificate of the chain; a later revocation does not change it."""
    certificate = made.certificate
    if certificate is not None:
        made = made.model_copy(update={"certificate": certificate.model_copy(update={"revoked_at": None, "revoked_because": None})})
    return hashlib.sha256(made.model_dump_json().encode()).hexdigest()


def values_sha256(values: Sequence[float]) -> str:
    """Hash of losses in their order."""
    return hashlib.sha256("\n".join(map(repr, values)).encode()).hexdigest()


def fingerprint(units: Mapping[str, object]) -> str:
    """Hash of a data set by unit, which does not depend on the order in which it was loaded."""
    return _sha256(dict(sorted(units.items())))


def _sha256(value: object) -> str:
    """Hash of a value in one canonical JSON form. Lone surrogates have an escape there, so they hash too."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _percent(share: float) -> str:
    """A share in per cent with one to three significant decimals: 8.4 %, 10.73 %, 95 %."""
    return f"{100 * share:.4g} %"
