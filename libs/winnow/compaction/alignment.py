"""How well an entry lies on one part of the previous summary: its best stretch, not all of it, because the question is *contains*."""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from typing import Final, NamedTuple

#: What a token that the unit does not hold costs, as a multiple of its weight: where wording must nearly agree, and where it may vary.
STRICT: Final = 2.0


class Aligned(NamedTuple):
    """The best alignment of an entry with a unit of M.

    A stretch of the entry gains the weight of each token that the unit holds and loses that of each other one; the best stretch is the one
    of largest sum (Kadane's maximum segment), so that what stands before and behind it costs nothing. Of several units each figure is the
    best.
    """

    stretch: float = 0.0  # log(1 + sum of the best stretch)
    stretch_strict: float = 0.0  # the same where a foreign token loses twice its weight
    dice: float = 0.0  # 2 · common tokens by distinct tokens of both
    covered: float = 0.0  # common tokens by distinct tokens of the unit


NOTHING: Final = Aligned()


def align(tokens: Sequence[int], weights: Sequence[float], units: Sequence[tuple[AbstractSet[int], int]]) -> Aligned:
    """Align one entry with some units; linear in the entry's tokens.

    Args:
        tokens: token ids of the entry, in order.
        weights: weight of each token id.
        units: of each unit the ids of its tokens that some entry has, and how many distinct tokens it has in all.
    """
    distinct = frozenset(tokens)
    of_tokens = [weights[token] for token in tokens]
    best = best_strict = dice = covered = 0.0
    for held, size in units:
        common = len(distinct & held)
        if not common:
            continue
        dice = max(dice, 2.0 * common / (len(distinct) + size))
        covered = max(covered, common / size)
        holds = list(map(held.__contains__, tokens))
        if sum(compress(of_tokens, holds)) <= best_strict:
            continue  # no stretch can be worth more than all that the unit holds; the strict one is never the larger
        run = strict = 0.0
        for weight, is_held in zip(of_tokens, holds, strict=True):
            if is_held:
                run += weight
                strict += weight
                if run > best:  # noqa: PLR1730  the innermost loop: a call of max() costs as much as the rest of it
                    best = run
                if strict > best_strict:  # noqa: PLR1730  as above
                    best_strict = strict
            else:
                run = run - weight if run > weight else 0.0
                strict = strict - STRICT * weight if strict > STRICT * weight else 0.0
    if best == 0.0:
        return NOTHING
    return Aligned(math.log1p(best), math.log1p(best_strict), dice, covered)
