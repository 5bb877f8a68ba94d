"""JSON as a judge must write it: repeated names are seen, and what only looks like a probability is none.

`json.loads` takes NaN and Infinity, lets the last of two equal names win without a word, and `True` passes a check for numbers.
"""

import json
import math
from typing import Any

from winnow.judging.adapters.failures import Failed, Failure


class Fields(dict[str, Any]):
    """An object of an answer, with the names that it has twice."""

    repeated: frozenset[str] = frozenset()


def _fields(pairs: list[tuple[str, Any]]) -> Fields:
    """Make an object and remember what it repeats."""
    fields = Fields(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        fields.repeated = frozenset(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]  # add gives None
    return fields


def loads(body: bytes) -> Fields:
    """The object that `body` holds. Raise `Failed` (malformed) for anything else: not UTF-8, cut short, too deep, a list."""
    try:
        value = json.loads(body.decode(), object_pairs_hook=_fields)
    except (ValueError, RecursionError):  # UnicodeDecodeError, JSONDecodeError and numbers of thousands of digits are ValueErrors
        raise Failed(Failure.MALFORMED) from None
    if not isinstance(value, Fields):
        raise Failed(Failure.MALFORMED)
    return value


def field(fields: Fields, name: str) -> Any:  # noqa: ANN401  whatever the answer holds; the caller checks
    """A field that is there once; None where it is missing or repeated (then it says two things)."""
    return None if name in fields.repeated else fields.get(name)


def probability(value: object) -> float | None:
    """A number in [0, 1]; None for anything else: booleans, numeric strings, NaN, Infinity, null, lists."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return float(value) if 0 <= value <= 1 else None


def count(value: object) -> int | None:
    """A number of tokens: a whole number that is not negative and fits a bigint; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 2**63 else None


def name(value: object) -> str | None:
    """What a model calls itself: printable, at most 200 characters; None for anything else."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        return None
    return value[:200]
