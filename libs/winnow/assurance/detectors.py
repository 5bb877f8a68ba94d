"""e-detectors (Shin, Ramdas and Rinaldo 2024), for comparison: under the budget the mean time to an alarm is at least the level."""

from collections.abc import Iterable, Iterator, Sequence

from winnow.assurance.designs import GRID7


def shiryaev_roberts(alpha: float, losses: Iterable[float], thetas: Sequence[float] = GRID7) -> Iterator[float]:
    """The mean over the bets of R <- (R + 1)·factor, after each loss: all starts count."""
    capital = [0.0] * len(thetas)
    for x in losses:
        capital = [(r + 1.0) * (1.0 + theta / alpha * (x - alpha)) for r, theta in zip(capital, thetas, strict=True)]
        yield sum(capital) / len(capital)


def cusum(alpha: float, losses: Iterable[float], thetas: Sequence[float] = GRID7) -> Iterator[float]:
    """The mean over the bets of C <- max(C, 1)·factor: only the best start counts. Never above Shiryaev-Roberts, under the same theorem."""
    capital = [0.0] * len(thetas)
    for x in losses:
        capital = [max(c, 1.0) * (1.0 + theta / alpha * (x - alpha)) for c, theta in zip(capital, thetas, strict=True)]
        yield sum(capital) / len(capital)
