"""A stream's past in a few dozen blocks: fine where it is recent, coarse where it is old."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

#: Units of the finest block.
BLOCK: Final = 25
#: Blocks of one size before the two oldest of them become one: a change d units ago is placed to within about d/4 units.
OF_ONE_SIZE: Final = 4


class Block(NamedTuple):
    """Consecutive units: how many, the sum of their losses, and the sum of the squares."""

    n: int
    total: float
    squares: float


def grown(blocks: tuple[Block, ...], new: Block) -> tuple[Block, ...]:
    """`blocks` with a newer one behind; of more than four of one size, the two oldest are merged. Sizes never rise towards the end."""
    found = [*blocks, new]
    end = len(found)
    while True:
        size = found[end - 1].n
        start = end
        while start and found[start - 1].n == size:
            start -= 1
        if end - start <= OF_ONE_SIZE:
            return tuple(found)
        a, b = found[start], found[start + 1]
        found[start : start + 2] = [Block(a.n + b.n, a.total + b.total, a.squares + b.squares)]
        end = start + 1


def of_losses(losses: Sequence[float], most: int) -> tuple[Block, ...]:
    """A sequence of losses in at most about `most` blocks of one size, of one unit each where it is short."""
    size = max(1, -(-len(losses) // most))
    cuts = (losses[at : at + size] for at in range(0, len(losses), size))
    return tuple(Block(len(cut), math.fsum(cut), math.fsum(x * x for x in cut)) for cut in cuts)
