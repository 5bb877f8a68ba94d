"""Numbers and moments as a page writes them."""

import math
from datetime import UTC, datetime

#: What stands for a number that is not there.
NOTHING = "–"
_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3_600.0, 86_400.0


def count(value: int | None) -> str:
    """A whole number with its thousands apart."""
    return NOTHING if value is None else f"{value:,}"


def percent(value: float | None, places: int = 1) -> str:
    """A share as per cent."""
    return NOTHING if value is None else f"{100 * value:.{places}f} %"


def seconds(value: float | None) -> str:
    """A duration in the unit that fits it."""
    if value is None:
        return NOTHING
    if value < 1:
        return f"{1000 * value:.0f} ms"
    if value < 2 * _MINUTE_S:
        return f"{value:.1f} s"
    if value < 2 * _HOUR_S:
        return f"{value / _MINUTE_S:.0f} min"
    return f"{value / _HOUR_S:.0f} h" if value < 2 * _DAY_S else f"{value / _DAY_S:.0f} days"


def milliseconds(value: float | None) -> str:
    """A duration given in milliseconds."""
    return seconds(None if value is None else value / 1000)


def usd(value: float | None) -> str:
    """US dollars; small sums keep two digits that say something."""
    if value is None:
        return NOTHING
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.2g}"


def size(value: int | None) -> str:
    """Bytes."""
    if value is None:
        return NOTHING
    scaled, unit = float(value), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if scaled < 1024:  # noqa: PLR2004  the base of the units
            break
        scaled, unit = scaled / 1024, larger
    return f"{scaled:.0f} {unit}" if unit == "B" else f"{scaled:.1f} {unit}"


def score(value: float | None) -> str:
    """A probability."""
    return NOTHING if value is None else f"{value:.2f}"


def number(value: float | None) -> str:
    """Any other number, to three digits; whole from a thousand on."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"  # noqa: PLR2004  where three digits would need a power


def evidence(log_evidence: float | None) -> str:
    """An e-value by its natural logarithm; large and small ones as a power of ten."""
    if log_evidence is None:
        return NOTHING
    power = log_evidence / math.log(10)
    return f"{math.exp(log_evidence):.3g}" if abs(power) < 4 else f"10^{power:.1f}"  # noqa: PLR2004  digits that are still read at a glance


def moment(value: datetime | None) -> str:
    """A moment to the minute, in UTC: all pages say so at their foot."""
    return NOTHING if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"


def way(log_evidence: float, level: float) -> float:
    """How far evidence has come towards the level of an alarm, 0 to 1, on the scale of its logarithm."""
    return min(1.0, max(0.0, log_evidence / math.log(level)))
