"""The recursion once more, written apart from the library: in log space, without a freeze, as the golden runs are."""

import math
from collections.abc import Iterable, Iterator

import numpy as np

from winnow.assurance.designs import Design


def log_evidence(design: Design, alpha: float, lo: float, losses: Iterable[float], block: int | None = None) -> Iterator[float]:
    """Yield ln M after each loss, in lifetime mode."""
    span = alpha - lo
    every = block or design.schedule.block
    log_r = np.full(len(design.weights), -np.inf)
    rise = [design.head_start] * len(design.waiting)
    following = [[design.eager / span * design.calm * span * (1 - alpha), 0.0] for _ in design.half_lives]
    shares = np.log(design.weights)
    cash = 1.0
    for n, x in enumerate(losses):
        if n % every == 0:
            k = n // every
            stake = design.schedule.cash(k) - design.schedule.cash(k + 1)
            cash = design.schedule.cash(k + 1)
            if stake > 0:
                log_r = np.logaddexp(log_r, math.log(stake) + (np.log(design.opening) if n == 0 else shares))
        y = x - alpha
        lams = [design.lam(size, alpha, lo) for size in design.fixed]
        for pair, half in zip(following, design.half_lives, strict=True):
            lams.append(min(design.reach / span, max(0.0, pair[0]) / (design.calm * span * (1 - alpha) + pair[1])))
            rho = 2 ** (-1 / half)
            pair[0], pair[1] = rho * pair[0] + y, rho * pair[1] + y * y
        for i, (size, patience) in enumerate(zip(design.waiting, design.patience, strict=True)):
            lam = design.lam(size, alpha, lo)
            lams.append(lam if rise[i] > patience else 0.0)
            rise[i] = max(0.0, rise[i] + math.log1p(lam * y))
        log_r = log_r + np.log1p(np.array(lams) * y)
        yield float(np.logaddexp.reduce([*log_r, math.log(cash)] if cash > 0 else log_r))
