"""The evaluation record: what was measured, on which data, by whom, and whether it met what was asked of it.

One form for every command that measures: `winnow eval` and `report`, `certify`, `calibrate`, `plan` and `reproduce`. It is JSON, versioned
(`schema_version`, major.minor; within a major version it only grows) and has a published JSON Schema (`docs/evaluation.schema.json`).
"""

import json
from enum import StrEnum
from typing import Annotated, Any, Final, Self
from uuid import UUID

from pydantic import Field, ModelWrapValidatorHandler, StringConstraints, ValidationError, computed_field, model_validator

from winnow.contracts.envelope import explain
from winnow.contracts.errors import Permanent
from winnow.contracts.events.base import Fleet, Model, Moment, Name, Sha256

#: Version that this code writes. A reader takes any minor version of this major one; unknown fields are ignored.
SCHEMA_VERSION: Final = "1.0"
#: Bytes. Records hold tables and a few entries, never a data set; what is larger is no record.
RECORD_BYTES: Final = 32 * 1024 * 1024

#: A word that names a metric, table or slice in gates and scripts.
Term = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
#: A cell of a table. Null means: not defined, or not measured.
Cell = bool | int | float | str | None


class UnreadableRecord(Permanent):
    """The text is no evaluation record that this version reads."""


class EvaluationKind(StrEnum):
    """What a record tells of."""

    JUDGE = "judge"  # how well a judge tells sourced entries from others
    COMPOSITION = "composition"  # what stored summaries consist of
    CERTIFICATE = "certificate"  # a risk bound at a stated confidence
    CALIBRATION = "calibration"  # the choice of a threshold or operating point
    PLAN = "plan"  # how many units a certificate or a monitor needs
    REPRODUCTION = "reproduction"  # a published figure, computed again
    MONITOR = "monitor"  # a monitor's course over a sequence of losses
    SIMULATION = "simulation"  # error rates and delays of a method on seeded random data


class GraderKind(StrEnum):
    """Who said what is true. A synthetic oracle is not a model: its labels are true by construction, and of constructed cases only."""

    HUMAN = "human"
    MODEL = "model"  # a language model's or classifier's opinion
    RULE = "rule"  # a program over recorded outcomes: tests passed, task reward
    SYNTHETIC = "synthetic"  # the case was built so that its label is certain
    UNSTATED = "unstated"  # the data does not say, and nobody said it for it


class Exposure(StrEnum):
    """Whether the subject's fitted numbers had seen the data."""

    NOT_FITTED = "not_fitted"  # nothing in the subject was fitted to labels
    UNSEEN = "unseen"  # fitted on other data
    CROSS_FITTED = "cross_fitted"  # fitted again for each fold, without the fold
    TRAINED_ON = "trained_on"  # fitted on this very data: the figures flatter
    UNKNOWN = "unknown"


class Direction(StrEnum):
    """Which side of its threshold a gate accepts."""

    AT_LEAST = "at_least"
    AT_MOST = "at_most"


class Status(StrEnum):
    """Whether a record met its gates. Without gates nothing was asked, and nothing passed."""

    PASSED = "passed"
    FAILED = "failed"
    NO_GATE = "no_gate"


class ReproductionVerdict(StrEnum):
    """What computing a published figure again showed."""

    REPRODUCED = "reproduced"
    OTHER_DEFINITION = "reproduced_with_another_definition"
    DOES_NOT_HOLD = "does_not_hold_as_worded"


class CertificateVerdict(StrEnum):
    """What the evidence of a certificate amounts to. The absence of an alarm is never `certified`."""

    CERTIFIED = "certified"  # the upper bound is at most alpha
    BREACHED = "breached"  # an alarm, or the lower bound lies above alpha
    UNPROVEN = "unproven"


class DataFingerprint(Model):
    """The data that was measured, so that another record can be told to rest on the same."""

    source: Name = Field(description="Name of the file or store, without its folder.")
    sha256: Sha256 = Field(description="Hash of the bytes, or of a canonical form that does not depend on load order; see `of`.")
    of: str = Field(default="file bytes", description="What the hash is taken over.")
    n: int = Field(ge=0, description="Number of units.")
    unit: Name = Field(description="What is counted: boundary, entry, trajectory, run.")
    licence: str | None = Field(default=None, description="Licence of the data, where it is stated.")


class Subject(Model):
    """What was measured."""

    kind: Name = Field(description="judge, compressor, operating point, monitor, publication.")
    name: Name = Field(description="Its name.")
    version: Name | None = Field(default=None, description="Null where the subject has none or it is not known.")
    parameters: dict[str, Cell] = Field(default_factory=dict, description="Settings that the figures depend on, such as tau.")


class Compressor(Model):
    """Who wrote the summaries. Figures hold for this compressor, not for others."""

    name: Name = Field(description="Host or summariser.")
    version: Name | None = Field(default=None, description="Version of its prompt or code.")
    model: Name | None = Field(default=None, description="The language model.")


class Grader(Model):
    """Who labelled the data, or measured the loss."""

    kind: GraderKind = Field(description="What kind of grader.")
    name: Name | None = Field(default=None, description="Person, model, program or construction.")
    version: Name | None = Field(default=None, description="Version of a model or program.")
    agreement: float | None = Field(default=None, ge=-1, le=1, description="Agreement with a second grading of the same units.")
    agreement_measure: str | None = Field(default=None, description="What `agreement` is: Cohen's kappa, share of equal A/A re-runs.")


class Interval(Model):
    """Bounds around a value. Either end may be missing: a one-sided bound."""

    lo: float | None = Field(default=None, description="Lower end; null: unbounded.")
    hi: float | None = Field(default=None, description="Upper end; null: unbounded.")
    level: float = Field(gt=0, lt=1, description="Confidence level, such as 0.95.")
    method: str = Field(description="How it was made: bootstrap by run (1,000 draws, seed 0, percentiles), exact binomial.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """The lower end is not above the upper one."""
        if self.lo is not None and self.hi is not None and self.lo > self.hi:
            msg = f"the interval [{self.lo}, {self.hi}] is upside down"
            raise ValueError(msg)
        return self


class Metric(Model):
    """One figure."""

    name: Term = Field(description="Name, as in the documentation of metrics: auroc, ece, kept.digit_changed.")
    slice: Term = Field(default="all", description="The part of the data: all, reasoning, later, section=Decisions.")
    value: float | None = Field(description="Null where it is not defined on this data (see `note`), never 0 instead.")
    interval: Interval | None = Field(default=None, description="Its uncertainty; null where none was computed.")
    n: int = Field(ge=0, description="Units that the value rests on.")
    positives: int | None = Field(default=None, ge=0, description="Those of them that count as positive, where that means something.")
    unit: str = Field(default="", description="Unit of the value; empty for shares and other pure numbers.")
    method: str = Field(default="", description="Definition or estimator, where the name leaves it open.")
    note: str = Field(default="", description="Why it is null, or how to read it.")

    @property
    def label(self) -> str:
        """`name.slice`, as gates write it; the name alone for the whole data."""
        return self.name if self.slice == "all" else f"{self.name}.{self.slice}"


class Gate(Model):
    """A condition on a figure, said beforehand."""

    metric: Term = Field(description="Name of the metric.")
    slice: Term = Field(default="all", description="Its part of the data.")
    direction: Direction = Field(description="Which side is accepted.")
    threshold: float = Field(description="The limit, itself accepted.")
    observed: float | None = Field(description="The value met; null where it was not measured: then the gate is not passed.")
    passed: bool = Field(description="Whether `observed` lies on the accepted side; equality passes.")

    @model_validator(mode="after")
    def _true(self) -> Self:
        """`passed` says what threshold and observation say."""
        if self.passed != _meets(self.direction, self.threshold, self.observed):
            msg = f"gate on {self.metric}: passed is {self.passed}, observed {self.observed} against {self.threshold} says otherwise"
            raise ValueError(msg)
        return self

    @classmethod
    def judge(cls, *, metric: str, slice: str = "all", direction: Direction, threshold: float, observed: float | None) -> Self:  # noqa: A002  the field's name
        """Make a gate and let the figures say whether it passed."""
        passed = _meets(direction, threshold, observed)
        return cls(metric=metric, slice=slice, direction=direction, threshold=threshold, observed=observed, passed=passed)


def _meets(direction: Direction, threshold: float, observed: float | None) -> bool:
    """Whether an observed value lies on the accepted side; what was not measured does not."""
    if observed is None:
        return False
    return observed >= threshold if direction == Direction.AT_LEAST else observed <= threshold


class Table(Model):
    """Figures that belong together. Cells are plain values, in the order of the columns."""

    name: Term = Field(description="Name by which scripts find it.")
    title: str = Field(description="What it shows, for people.")
    columns: tuple[str, ...] = Field(min_length=1, description="Headings.")
    rows: tuple[tuple[Cell, ...], ...] = Field(default=(), description="One cell a column; null: not defined or not measured.")
    note: str = Field(default="", description="How to read it.")

    @model_validator(mode="after")
    def _rectangular(self) -> Self:
        """Every row has a cell for every column."""
        if any(len(row) != len(self.columns) for row in self.rows):
            msg = f"table {self.name}: a row has another number of cells than there are columns"
            raise ValueError(msg)
        return self


class Claim(Model):
    """A published figure beside what computing it again gave."""

    name: Term = Field(description="Short name of the claim or experiment.")
    statement: str = Field(description="What was published, in our words.")
    source: str = Field(default="", description="Where it was published: paper and section or table.")
    published: Cell = Field(description="The published value.")
    observed: Cell = Field(description="The value found.")
    interval: Interval | None = Field(default=None, description="Uncertainty of `observed`.")
    verdict: ReproductionVerdict = Field(description="What it showed.")
    definition: str = Field(description="How `observed` is defined: denominator, unit, test.")


class Certified(Model):
    """What a certificate binds. It says no more than was shown, expires, and is revoked by an alarm."""

    certificate_id: UUID | None = Field(default=None, description="Id in the fleet's table of certificates; null where it was not stored.")
    fleet: Fleet | None = Field(default=None, description="The fleet it is for; null for one that was made offline.")
    verdict: CertificateVerdict = Field(description="What the evidence amounts to.")
    statement: str = Field(description="What was shown, in plain words, with its numbers.")
    assumptions: tuple[str, ...] = Field(default=(), description="What must hold for the statement to hold.")
    judge: Subject | None = Field(default=None, description="The judge, where the subject is something else.")
    loss: Name = Field(description="The loss: marginal harm, conditional harm, divergence, decision change.")
    loss_type: Name = Field(description="Declared type: binary, graded in [0, 1], paired in [-1, 1].")
    unit: Name = Field(description="What one loss belongs to: trajectory or session, never a turn.")
    denominator: Name = Field(description="Which units are counted: all, or those that the reference solves.")
    n: int = Field(ge=0, description="Units in the denominator.")
    k: float | None = Field(default=None, ge=0, description="Their summed losses; a count for a binary loss.")
    values_sha256: Sha256 | None = Field(default=None, description="Hash of the losses in registered order, where they are not counts.")
    method: Name = Field(description="The bound or test.")
    method_version: Name | None = Field(default=None, description="Version of its implementation.")
    alpha: float = Field(description="The risk that must not be exceeded; a margin for paired losses.")
    delta: float = Field(gt=0, lt=1, description="The certificate is wrong with at most this probability.")
    bound: float | None = Field(default=None, description="Upper bound of the risk at confidence 1 - delta.")
    lower_bound: float | None = Field(default=None, description="Lower bound at confidence 1 - delta, where it was computed.")
    tau: float | None = Field(default=None, ge=0, le=1, description="Served threshold of the judge.")
    operating_point: str | None = Field(default=None, description="Served operating point, where it has a name or id.")
    registration_sha256: Sha256 | None = Field(default=None, description="Hash of n, alpha, delta and margin, made before the first look.")
    horizon: int | None = Field(default=None, ge=1, description="Units over which a monitor guards the certificate.")
    issued_at: Moment = Field(description="When it was issued.")
    expires_at: Moment | None = Field(default=None, description="When it ends; null where nothing was issued.")
    revoked_at: Moment | None = Field(default=None, description="When it was revoked.")
    revoked_because: str | None = Field(default=None, description="The alarm or person that revoked it.")

    @model_validator(mode="after")
    def _in_time(self) -> Self:
        """It expires after it is issued, and a revocation has a cause."""
        if self.expires_at is not None and self.expires_at <= self.issued_at:
            msg = "expires_at must lie after issued_at"
            raise ValueError(msg)
        if (self.revoked_at is None) != (self.revoked_because is None):
            msg = "revoked_at and revoked_because go together"
            raise ValueError(msg)
        return self


class EvaluationRecord(Model):
    """What was measured, on which data, by whom, and whether it met what was asked of it."""

    schema_version: str = Field(default=SCHEMA_VERSION, pattern=r"^\d{1,4}\.\d{1,4}$", description="major.minor of this form.")
    id: UUID = Field(description="Id of the record.")
    kind: EvaluationKind = Field(description="What the record tells of.")
    created_at: Moment = Field(description="When the measurement was made; given by the caller.")
    title: str = Field(description="One line for people.")
    command: str = Field(default="", description="The command line that made it, without secrets.")
    software: dict[str, str] = Field(default_factory=dict, description="Versions: winnow, python and what the figures depend on.")
    data: tuple[DataFingerprint, ...] = Field(default=(), description="The data; empty only where none was used (a plan, a simulation).")
    subject: Subject = Field(description="What was measured.")
    compressor: Compressor | None = Field(default=None, description="Null: not known.")
    grader: Grader | None = Field(default=None, description="Null only where nothing was graded.")
    exposure: Exposure = Field(default=Exposure.UNKNOWN, description="Whether the subject's fitted numbers had seen the data.")
    seed: int | None = Field(default=None, description="Seed of everything random; null where nothing is.")
    metrics: tuple[Metric, ...] = Field(default=(), description="The figures.")
    gates: tuple[Gate, ...] = Field(default=(), description="Conditions on them, said beforehand.")
    tables: tuple[Table, ...] = Field(default=(), description="Figures that belong together.")
    claims: tuple[Claim, ...] = Field(default=(), description="Published figures that were computed again.")
    certificate: Certified | None = Field(default=None, description="What was certified, in a record of that kind.")
    warnings: tuple[str, ...] = Field(default=(), description="What makes the figures say less than they seem to.")
    notes: tuple[str, ...] = Field(default=(), description="Definitions and whatever else a reader needs.")

    @computed_field(description="passed, failed, or no_gate: a record without gates has passed nothing.")  # type: ignore[prop-decorator]  # pydantic's own form
    @property
    def status(self) -> Status:
        """Whether all gates passed; `no_gate` where there is none."""
        if not self.gates:
            return Status.NO_GATE
        return Status.PASSED if all(gate.passed for gate in self.gates) else Status.FAILED

    @model_validator(mode="wrap")
    @classmethod
    def _says_its_status(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401  whatever is to be validated
        """A status that was written down is the one that the gates give."""
        record = handler(data)
        said = data.get("status") if isinstance(data, dict) else None
        if said is not None and said != record.status:
            msg = f"status is {record.status.value} by the gates, the record says otherwise"
            raise ValueError(msg)
        return record

    def to_json(self) -> str:
        """The record as it is written to a file: indented JSON with a newline at the end."""
        return self.model_dump_json(indent=2) + "\n"

    def metric(self, name: str, slice: str = "all") -> Metric | None:  # noqa: A002  the field's name
        """The metric of that name and slice, or None."""
        return next((m for m in self.metrics if m.name == name and m.slice == slice), None)

    def table(self, name: str) -> Table | None:
        """The table of that name, or None."""
        return next((t for t in self.tables if t.name == name), None)


def read_record(data: str | bytes) -> EvaluationRecord:
    """Read a record. Raise `UnreadableRecord` where it is none, or of a major version that this code does not know."""
    if len(data) > RECORD_BYTES:
        msg = f"an evaluation record has at most {RECORD_BYTES // 2**20} MiB, this text has more"
        raise UnreadableRecord(msg)
    try:
        head = json.loads(data)
    except (ValueError, RecursionError):
        msg = "the text is not JSON; give the .json file that `winnow eval judge --out` wrote"
        raise UnreadableRecord(msg) from None
    version = head.get("schema_version") if isinstance(head, dict) else None
    if not isinstance(version, str):
        msg = "the text has no schema_version; it is no evaluation record"
        raise UnreadableRecord(msg)
    if version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
        msg = f"the record has schema version {version[:20]!r}, this Winnow reads {SCHEMA_VERSION}; use the Winnow that wrote it"
        raise UnreadableRecord(msg)
    try:
        return EvaluationRecord.model_validate_json(data)
    except ValidationError as exc:
        raise UnreadableRecord(explain(exc)) from None


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a record as it is written."""
    schema = EvaluationRecord.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:winnow:evaluation:v1", **schema}
