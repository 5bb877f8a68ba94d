"""Choosing a level of pruning from a ladder, from the mildest to the most aggressive, so that its risk is at most alpha (Learn-Then-Test).

Angelopoulos et al. 2021, sections 2 and 4. P(risk of the chosen level <= alpha) >= 1 - delta; risks need not rise along the ladder.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from winnow.assurance import methods
from winnow.assurance.kinds import LossType
from winnow.assurance.methods import Guarantee
from winnow.assurance.samples import InvalidSample, Sample, probability


class Rule(StrEnum):
    """How the tests of a ladder share the error budget."""

    FIXED_SEQUENCE = "fixed-sequence"  # mildest first, each at the whole delta, the first failure stops
    HOLM = "holm"  # step-down over all levels, in no order
    BONFERRONI = "bonferroni"  # delta over the number of levels


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level of the ladder, measured on calibration units of its own or the same."""

    name: str
    sample: Sample
    #: Share of tokens or cost saved; NaN where it was not measured.
    savings: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The outcome, with everything that it rests on; a certificate stores all of it."""

    rule: Rule
    method: str
    guarantee: Guarantee
    alpha: float
    delta: float
    ladder: tuple[Level, ...]
    #: p-value of each level, tested or not.
    p_values: tuple[float, ...]
    #: Which levels are certified; for the fixed sequence a prefix.
    certified: tuple[bool, ...]
    #: Place of the operating point in the ladder; None: nothing is certified, keep everything.
    chosen: int | None

    @property
    def level(self) -> Level | None:
        """The operating point; None means keep everything."""
        return None if self.chosen is None else self.ladder[self.chosen]

    @property
    def last(self) -> int | None:
        """Place of the most aggressive certified level; it need not be the operating point, for savings need not grow."""
        places = [i for i, passed in enumerate(self.certified) if passed]
        return places[-1] if places else None


def select(
    ladder: Sequence[Level], *, alpha: float, delta: float, method: str | None = None, rule: Rule = Rule.FIXED_SEQUENCE
) -> Selection:
    """Test every level, certify by the rule, and choose the certified level with the highest savings (the milder one of equals).

    The ladder is in order, mildest first; each level is tested at its own n, and n = 0 fails. For tau the ladder begins with keeping all
    and goes on with tau ascending. Where savings are unknown at any certified level, the most aggressive certified level is chosen.

    Raises:
        InvalidSample: levels of several loss types or the same name, or a method that is not for them.
    """
    alpha, delta = probability("alpha", alpha), probability("delta", delta)
    types = {level.sample.type for level in ladder}
    if len(types) > 1:
        raise InvalidSample("the levels of one ladder have losses of one declared type")
    if len({level.name for level in ladder}) < len(ladder):
        raise InvalidSample("two levels of the ladder have the same name")
    name = method or methods.default(types.pop() if types else LossType.BINARY)
    p_values = tuple(methods.p_value(level.sample, alpha, name) for level in ladder)
    certified = _RULES[rule](p_values, delta)
    return Selection(
        rule=rule,
        method=name,
        guarantee=methods.method(name).guarantee,
        alpha=alpha,
        delta=delta,
        ladder=tuple(ladder),
        p_values=p_values,
        certified=certified,
        chosen=most_saving([level.savings for level in ladder], certified),
    )


def fixed_sequence(p_values: Sequence[float], delta: float) -> tuple[bool, ...]:
    """In the given order, each at the whole delta; the first failure stops, and later passes are ignored."""
    passed: list[bool] = []
    for p in p_values:
        passed.append(p <= delta and all(passed))
    return tuple(passed)


def bonferroni(p_values: Sequence[float], delta: float) -> tuple[bool, ...]:
    """Each at delta over their number."""
    return tuple(p <= delta / len(p_values) for p in p_values)


def holm(p_values: Sequence[float], delta: float) -> tuple[bool, ...]:
    """Holm 1979: the smallest at delta/m, the next at delta/(m - 1), and so on until one fails; never less than Bonferroni gives."""
    passed = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if p_values[place] > delta / (len(p_values) - rank):
            break
        passed[place] = True
    return tuple(passed)


def most_saving(savings: Sequence[float], certified: Sequence[bool]) -> int | None:
    """Place of the certified level with the highest savings; the milder one of equals; the last certified where any of them is unknown."""
    places = [i for i, passed in enumerate(certified) if passed]
    if not places:
        return None
    if any(math.isnan(savings[i]) for i in places):
        return places[-1]
    return max(places, key=lambda i: (savings[i], -i))


_RULES = {Rule.FIXED_SEQUENCE: fixed_sequence, Rule.HOLM: holm, Rule.BONFERRONI: bonferroni}
