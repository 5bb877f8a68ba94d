"""When it changed, after an alarm: an estimate, of guarantee class `none`. Two rates, and the likelihood of each place between them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from winnow.assurance.blocks import Block

#: Nats below the best place up to which a place counts as likely: the window so found held the change in 87 to 92 % of simulated runs.
LIKELY_NATS: Final = 3.0
#: Smallest variance that is believed: identical losses would have a likelihood without bound.
_LEAST_VARIANCE: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeWindow:
    """Where the change likely was. Units are counted from 1; the change is the first unit under the new risk."""

    first: int
    last: int
    best: int


def profile(blocks: Sequence[Block]) -> tuple[float, ...]:
    """Log-likelihood l1(s) + l2(s) of a change before block s, for s = 1 .. len - 1.

    Bernoulli with the two rates where all losses were 0 or 1 (then, and only then, their sum is that of their squares); else normal with
    two means and one variance. Linear in the number of blocks.
    """
    whole = _summed(blocks)
    binary = whole.total == whole.squares
    found: list[float] = []
    n, total, squares = 0, 0.0, 0.0
    for block in blocks[:-1]:
        n, total, squares = n + block.n, total + block.total, squares + block.squares
        before, after = Block(n, total, squares), Block(whole.n - n, whole.total - total, whole.squares - squares)
        found.append(_bernoulli(before) + _bernoulli(after) if binary else _normal(before, after))
    return tuple(found)


def change_window(blocks: Sequence[Block]) -> ChangeWindow | None:
    """The likely window over the units in `blocks`, oldest first; None without any unit. As fine as the blocks are.

    A place counts where the mean afterwards is higher than before. The first unit counts too where one mean for all is as likely: a stream
    may have been bad from its start.
    """
    if not blocks:
        return None
    whole = _summed(blocks)
    scores = [(_bernoulli(whole) if whole.total == whole.squares else _normal(whole, Block(0, 0.0, 0.0)), 1)]
    n, total = 0, 0.0
    for block, score in zip(blocks, profile(blocks), strict=False):
        n, total = n + block.n, total + block.total
        if (whole.total - total) * n > total * (whole.n - n):
            scores.append((score, n + 1))
    best, at = max(scores, key=lambda pair: pair[0])
    likely = [place for score, place in scores if score >= best - LIKELY_NATS]
    return ChangeWindow(first=min(likely), last=max(likely), best=at)


def _summed(blocks: Sequence[Block]) -> Block:
    """All units in one block."""
    return Block(sum(b.n for b in blocks), math.fsum(b.total for b in blocks), math.fsum(b.squares for b in blocks))


def _bernoulli(block: Block) -> float:
    """n·(r·ln r + (1 - r)·ln(1 - r)) at the block's own rate r."""
    n, k = block.n, block.total
    return _xlogy(k, k / n) + _xlogy(n - k, 1.0 - k / n) if n else 0.0


def _xlogy(x: float, y: float) -> float:
    """x·ln y; 0 where x is 0."""
    return x * math.log(y) if x > 0 and y > 0 else 0.0


def _normal(before: Block, after: Block) -> float:
    """-n/2·ln(variance within both parts)."""
    n = before.n + after.n
    rest = sum(b.squares - b.total * b.total / b.n for b in (before, after) if b.n)
    return -0.5 * n * math.log(max(rest / n, _LEAST_VARIANCE))
