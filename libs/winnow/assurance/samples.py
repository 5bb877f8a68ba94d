"""Losses as they are declared: one number a trajectory or session, of a stated type. What is not declared is refused, never guessed."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from winnow.assurance.kinds import LossType, Order
from winnow.assurance.special import Floats
from winnow.contracts.errors import Permanent

#: Most units of one sample; far above any calibration, below what would not fit into memory.
MOST_UNITS: Final = 50_000_000


class InvalidSample(Permanent):
    """The losses, counts or levels do not say what a test or bound needs; nothing was computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Losses of n units, as one bound or test reads them. Make it with `counts`, `binary`, `graded` or `paired`."""

    type: LossType
    n: int
    #: Sum of the losses; the integer count where they are binary.
    total: float
    #: The values, in the order given; None where only counts are known.
    values: tuple[float, ...] | None = None
    order: Order = Order.ANY
    #: Units that were registered before the first look; bounds in sequence need it to equal n.
    registered_n: int | None = None

    @property
    def k(self) -> int:
        """Count of losses: exact where binary, rounded up where graded, as Hoeffding–Bentkus reads it."""
        return math.ceil(self.total)

    @property
    def rate(self) -> float:
        """Mean loss; NaN without units."""
        return self.total / self.n if self.n else math.nan

    @classmethod
    def counts(cls, k: int, n: int) -> Self:
        """Binary losses, known by their count: k losses in n units.

        Raises:
            InvalidSample: not integers with 0 <= k <= n.
        """
        k, n = count("k", k), count("n", n)
        if k > n:
            raise InvalidSample(f"there are {k} losses in {n} units; k is at most n")
        return cls(type=LossType.BINARY, n=n, total=k)

    @classmethod
    def binary(cls, values: Iterable[object], *, order: Order = Order.ANY, registered_n: int | None = None) -> Self:
        """Binary losses one by one: 0, 1, false or true.

        Raises:
            InvalidSample: another value; the text gives its place.
        """
        return cls._of(LossType.BINARY, values, order, registered_n)

    @classmethod
    def graded(cls, values: Iterable[object], *, order: Order = Order.ANY, registered_n: int | None = None) -> Self:
        """Losses in [0, 1].

        Raises:
            InvalidSample: another value; the text gives its place.
        """
        return cls._of(LossType.GRADED, values, order, registered_n)

    @classmethod
    def paired(cls, values: Iterable[object], *, order: Order = Order.ANY, registered_n: int | None = None) -> Self:
        """Differences in [-1, 1], such as 1{A != B} - 1{A != A'}; never clipped.

        Raises:
            InvalidSample: another value; the text gives its place.
        """
        return cls._of(LossType.PAIRED, values, order, registered_n)

    @classmethod
    def of(cls, type_: LossType, values: Iterable[object], *, order: Order = Order.ANY, registered_n: int | None = None) -> Self:
        """Losses of a type that is known at run time only; see the makers above."""
        return cls._of(type_, values, order, registered_n)

    def array(self) -> Floats:
        """The values; rebuilt from the counts where only those are known (losses last: an order without meaning).

        Raises:
            InvalidSample: neither is there.
        """
        if self.values is not None:
            return np.asarray(self.values, dtype=np.float64)
        if self.type is not LossType.BINARY:
            raise InvalidSample("graded and paired losses are needed one by one, not as a sum")
        return np.repeat([0.0, 1.0], [self.n - self.k, self.k])

    def mirrored(self) -> "Sample":
        """The same units with 1 - loss: an upper bound of the mirror is a lower bound of the sample. Not for paired losses."""
        if self.type is LossType.PAIRED:
            raise InvalidSample("paired losses are mirrored by changing their sign, not by 1 - loss")
        values = None if self.values is None else tuple(1.0 - x for x in self.values)
        total = self.n - self.total
        return Sample(type=self.type, n=self.n, total=total, values=values, order=self.order, registered_n=self.registered_n)

    def on_unit_interval(self) -> "Sample":
        """Paired losses d as graded ones u = (d + 1)/2; others unchanged. A bound U of u is the bound 2U - 1 of d."""
        if self.type is not LossType.PAIRED:
            return self
        values = tuple((x + 1.0) / 2.0 for x in self.values or ())
        return Sample(
            type=LossType.GRADED, n=self.n, total=math.fsum(values), values=values, order=self.order, registered_n=self.registered_n
        )

    @classmethod
    def _of(cls, type_: LossType, values: Iterable[object], order: Order, registered_n: int | None) -> Self:
        """Check every value against the declared type."""
        checked = tuple(loss(value, type_, place) for place, value in enumerate(values, start=1))
        if len(checked) > MOST_UNITS:
            raise InvalidSample(f"a sample has at most {MOST_UNITS} units")
        if registered_n is not None:
            registered_n = count("registered_n", registered_n)
        total = math.fsum(checked)
        return cls(type=type_, n=len(checked), total=total, values=checked, order=order, registered_n=registered_n)


def loss(value: object, type_: LossType, place: int) -> float:
    """A loss of this type as a number. `place` counts from 1 and is said where the value is refused.

    Raises:
        InvalidSample: not finite, out of range, of another kind; booleans are understood where binary is declared.
    """
    if isinstance(value, bool) and type_ is not LossType.BINARY:
        raise InvalidSample(f"loss {place} is {value}; booleans belong to binary losses, and these were declared {type_.value}")
    if not isinstance(value, int | float):
        raise InvalidSample(f"loss {place} is no number")
    if not type_.lo <= value <= 1:  # NaN fails it too
        raise InvalidSample(f"loss {place} is {float_text(value)}; {type_.value} losses lie in [{type_.lo}, 1]")
    if type_ is LossType.BINARY and value not in {0, 1}:
        raise InvalidSample(f"loss {place} is {float_text(value)}; binary losses are 0 or 1: declare them graded before looking at them")
    return float(value)


def float_text(value: float) -> str:
    """A number for an error text: short also where an integer has thousands of digits."""
    try:
        return repr(float(value))
    except OverflowError:
        return "a huge integer"


def count(name: str, value: object) -> int:
    """A count as an integer. `n·(k/n)` in floats is k + 1 for thousands of pairs, so a rate is never taken for a count.

    Raises:
        InvalidSample: no integer, negative, or too large.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidSample(f"{name} must be an integer count, not a rate")
    if not 0 <= value <= MOST_UNITS:
        raise InvalidSample(f"{name} must lie between 0 and {MOST_UNITS}")
    return value


def probability(name: str, value: object) -> float:
    """A number strictly between 0 and 1, such as alpha or delta.

    Raises:
        InvalidSample: anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise InvalidSample(f"{name} must be a number strictly between 0 and 1")
    return float(value)
