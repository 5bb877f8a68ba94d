"""How alike two texts are, as `difflib` measures it without its junk heuristics, several times as fast."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Longest text whose characters are compared; of a longer one the beginning counts. The search is quadratic at worst.
RATIO_CHARS: Final = 2_000


#: Bins of the character counts; characters that share one only raise the bound.
_BINS: Final = 64


def bounds(left: Sequence[str], right: Sequence[str]) -> NDArray[np.float64]:
    """For each pair of texts an upper bound of their ratio: by the multisets of their characters, all pairs at once."""
    counts = _counts([*left, *right])
    of_left, of_right = counts[: len(left)], counts[len(left) :]
    total = np.maximum(of_left.sum(axis=1) + of_right.sum(axis=1), 1)
    bound: NDArray[np.float64] = 2.0 * np.minimum(of_left, of_right).sum(axis=1) / total
    return bound


def _counts(compared: Sequence[str]) -> NDArray[np.int64]:
    """Character counts of texts, by bin."""
    cut = [text[:RATIO_CHARS] for text in compared]
    codes = np.frombuffer("".join(cut).encode("utf-32-le", "surrogatepass"), "<u4")
    row = (np.arange(len(cut)) * _BINS).repeat([len(text) for text in cut])
    return np.bincount(row + codes % _BINS, minlength=len(cut) * _BINS).reshape(len(cut), _BINS)


def ratio(left: str, right: str, floor: float) -> float:
    """Return 2 · matches / length sum (Ratcliff and Obershelp), or 0.0 where it cannot reach `floor`.

    Equals `difflib.SequenceMatcher(None, left, right, autojunk=False).ratio()`. Two upper bounds decide most pairs: the
    lengths, and the longest common subsequence.
    """
    left, right = left[:RATIO_CHARS], right[:RATIO_CHARS]
    if left == right:
        return 1.0
    total = len(left) + len(right)
    if 2 * min(len(left), len(right)) < floor * total:
        return 0.0
    if 2 * _subsequence(left, right) < floor * total:
        return 0.0
    found = 2.0 * _matches(left, right) / total
    return found if found >= floor else 0.0


def _matches(left: str, right: str) -> int:
    """Sum of the matching blocks: the longest, then the same on both sides of it."""
    total = 0
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        at, in_b, size = _longest(a, b)
        if size:
            total += size
            if at and in_b:
                pending.append((a[:at], b[:in_b]))
            if at + size < len(a) and in_b + size < len(b):
                pending.append((a[at + size :], b[in_b + size :]))
    return total


def _longest(a: str, b: str) -> tuple[int, int, int]:
    """Longest common block; of several the first in `a`, then the first in `b`. Bisects on the length: slices compare in C."""
    short = min(len(a), len(b))
    low = _common_prefix(a, b, short)
    high = short
    while low < high:
        middle = (low + high + 1) // 2
        if _share(a, b, middle):
            low = middle
        else:
            high = middle - 1
    if not low:
        return 0, 0, 0
    blocks = {b[at : at + low] for at in range(len(b) - low + 1)}
    at = next(at for at in range(len(a) - low + 1) if a[at : at + low] in blocks)
    return at, b.index(a[at : at + low]), low


def _common_prefix(a: str, b: str, short: int) -> int:
    """Length of the common prefix: a lower bound of the longest block."""
    return next((at for at in range(short) if a[at] != b[at]), short)


def _share(a: str, b: str, size: int) -> bool:
    """Whether a block of `size` characters of `a` stands in `b`."""
    blocks = {b[at : at + size] for at in range(len(b) - size + 1)}
    return not blocks.isdisjoint([a[at : at + size] for at in range(len(a) - size + 1)])


def _subsequence(a: str, b: str) -> int:
    """Length of the longest common subsequence, an upper bound of the matches, by bits of one long integer (Hyyrö)."""
    places: dict[str, int] = {}
    for at, char in enumerate(a):
        places[char] = places.get(char, 0) | 1 << at
    full = (1 << len(a)) - 1
    row = full
    for char in b:
        hit = row & places.get(char, 0)
        row = ((row + hit) | (row - hit)) & full
    return len(a) - row.bit_count()
