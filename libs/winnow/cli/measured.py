"""Where the losses of a certificate or calibration come from: a file, counts, or a stream's ledger."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from winnow.assurance.kinds import Graders, Loss, Order, Unit
from winnow.cli import records
from winnow.contracts.errors import Permanent
from winnow.contracts.vocabulary import Missing

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.assurance.samples import Sample
    from winnow.cli.unit_lines import Units
    from winnow.contracts.evaluation import DataFingerprint


class Unusable(Permanent):
    """The losses cannot carry a certificate; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Losses from a file, from counts or from a stream."""

    sample: "Sample"
    data: "DataFingerprint"
    #: The same losses over the units that the reference solves.
    solved: "Sample | None" = None
    #: The file's units; None where they came as counts or from a stream.
    units: "Units | None" = None
    graders: tuple[str, ...] = ()
    stream: str | None = None
    first: int = 0
    last: int = 0
    #: Operating point under which a stream's units ran, and who compressed; None where it is not known.
    operating_point: int | None = None
    compressor: str | None = None
    warnings: tuple[str, ...] = ()


def from_counts(text: str, loss: Loss, unit: Unit, solved: int | None) -> Measured:
    """K losses in N units, from the command line."""
    from winnow.assurance.certificates import fingerprint
    from winnow.assurance.samples import InvalidSample, Sample
    from winnow.contracts.evaluation import DataFingerprint

    k, _, n = text.partition("/")
    if not (k.isascii() and k.isdigit() and n.isascii() and n.isdigit() and len(text) < 30):  # noqa: PLR2004  two counts
        raise Unusable(f"--counts {text[:40]!r}: write K/N, such as 31/500")
    sample = Sample.counts(int(k), int(n))
    if solved is not None and loss is not Loss.HARM_ALL:
        raise Unusable("--solved belongs to --loss harm_all")
    if solved is not None and not int(k) <= solved <= int(n):
        raise InvalidSample(f"the reference solves between {k} and {n} units")
    return Measured(
        sample=sample,
        solved=None if solved is None else Sample.counts(int(k), solved),
        data=DataFingerprint(source="counts", sha256=fingerprint({"k": int(k), "n": int(n)}), of="the counts", n=int(n), unit=unit.value),
        warnings=("only counts were given: that each unit is a trajectory or session of its own cannot be checked",),
    )


def from_file(name: str, loss: Loss, graders: Graders, order: Order, registered_n: int | None) -> Measured:
    """The losses of a file."""
    from winnow.assurance import losses as of
    from winnow.assurance.certificates import fingerprint
    from winnow.cli.unit_lines import Form, read_units
    from winnow.contracts.evaluation import DataFingerprint

    content = records.read_bytes(name)
    units = read_units(name, content)
    sample = units.sample(loss, graders=graders, order=order, registered_n=registered_n)
    by_outcome = units.form is Form.OUTCOME and loss is Loss.HARM_ALL
    plain = records.fingerprint(name, content, len(units.rows))
    rows: dict[str, Any] = {unit: repr(row) for unit, row in units.rows}
    nameless = units.form is Form.NUMBERS
    return Measured(
        sample=sample,
        solved=of.of_outcomes(Loss.HARM_GIVEN_FULL, units.outcomes) if by_outcome else None,
        units=units,
        data=DataFingerprint(
            source=plain.source,
            sha256=plain.sha256 if nameless else fingerprint(rows),
            of="file bytes" if nameless else "units by name, whatever their order",
            n=len(units.rows),
            unit="run",
        ),
        warnings=("the lines have no unit names: that none comes twice cannot be checked",) if nameless else (),
    )


def from_stream(fleet: str, stream: str, loss: Loss, missing: Missing, registered_n: int | None) -> Measured:
    """The losses of a stream's current epoch, in sampling order."""
    from winnow.assurance.certificates import fingerprint
    from winnow.assurance.samples import Sample
    from winnow.cli.connection import in_transaction
    from winnow.contracts.evaluation import DataFingerprint
    from winnow.storage import losses as stored

    async def work(tx: "AsyncConnection") -> stored.Ledger:
        return await stored.ledger(tx, fleet, stream)

    found = in_transaction(work)
    if len(found.probabilities) > 1:
        raise Unusable(f"stream {stream}: units were drawn with different probabilities; a certificate needs them drawn alike")
    if found.lo != loss.type.lo:
        raise Unusable(f"stream {stream} holds losses from {found.lo:g} on, {loss.value} is {loss.type.value}; choose another --loss")
    ungraded = sum(value is None for _, value in found.units)
    if missing is Missing.FOLD:
        units = [(unit, 1.0 if value is None else value) for unit, value in found.units]
    else:
        units = [(unit, value) for unit, value in found.units if value is not None]
    said = f"{ungraded} of {len(found.units)} units have no grade: " + ("a loss of 1 each" if missing is Missing.FOLD else "left out")
    return Measured(
        sample=Sample.of(loss.type, [value for _, value in units], order=Order.SEQ, registered_n=registered_n),
        data=DataFingerprint(
            source=f"stream {stream}"[:200],
            sha256=fingerprint({unit: repr(value) for unit, value in units}),
            of="units by name, whatever their order",
            n=len(units),
            unit="run",
        ),
        graders=found.graders,
        stream=stream,
        first=found.first,
        last=found.last,
        operating_point=found.operating_point,
        compressor=found.compressor,
        warnings=(said,) if ungraded else (),
    )
