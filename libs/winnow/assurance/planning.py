"""How much traffic a promise takes: units for a certificate, and units until a monitor sees a shift."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from statistics import NormalDist
from typing import Final

import numpy as np

from winnow.assurance import bounds, pvalues, simulation
from winnow.assurance.config import MonitorConfig
from winnow.assurance.samples import InvalidSample, count, probability
from winnow.assurance.special import binomial_tail

#: Units beyond which no certificate is planned; half a million graded runs is nobody's calibration.
MOST_UNITS: Final = 500_000
#: Units of the least mean delay up to which a shift is simulated: half a minute's work. Ten years of forty units a day are 146,000.
LONGEST_DELAY: Final = 10_000
#: Power at which a promise counts as kept: nine times in ten.
POWER: Final = 0.9

#: A test of counts: (k, n, alpha) -> p.
CountTest = Callable[[int, int, float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateSize:
    """Units for a certificate at a given true risk. Power over n is a saw-tooth: one more unit without one more allowed loss lowers it."""

    true: float
    alpha: float
    delta: float
    power: float
    #: Smallest n with that power.
    first: int
    #: Smallest n from which every n has it (looked at up to twice `first`).
    stays: int
    #: Losses that are allowed at `stays`.
    allowed: int
    #: Units that certify where no loss occurs at all: ceil(ln(delta)/ln(1 - alpha)) for the exact test.
    without_loss: int


def certificate_size(
    true: float, alpha: float, *, delta: float = 0.05, power: float = POWER, test: CountTest = pvalues.exact
) -> CertificateSize:
    """Units that certify `alpha` with probability `power` where the risk is `true`; by enumeration, no approximation.

    Raises:
        InvalidSample: the risk is not below alpha, so no n would do; or more than 500,000 units would be needed.
    """
    alpha, delta, power = probability("alpha", alpha), probability("delta", delta), probability("power", power)
    if isinstance(true, bool) or not 0 <= true < alpha:
        raise InvalidSample(f"a true risk of {true!r} cannot be certified at alpha = {alpha:g}: it must be at least 0 and below alpha")
    without_loss = first = 0
    last_short = allowed = 0
    k, n = -1, 0
    while n < (2 * first or MOST_UNITS + 1):
        n += 1
        while k + 1 < n and test(k + 1, n, alpha) <= delta:
            k += 1
            without_loss = without_loss or n
        if k >= 0 and binomial_tail(k, n, true) >= power:
            first = first or n
        else:
            last_short = n
        if first and n == last_short + 1:
            allowed = k
    if not first:
        raise InvalidSample(f"more than {MOST_UNITS} units would be needed: the risk lies too near to alpha, or the power too near to 1")
    return CertificateSize(
        true=true, alpha=alpha, delta=delta, power=power, first=first, stays=last_short + 1, allowed=allowed, without_loss=without_loss
    )


def certificate_power(true: float, n: int, alpha: float, *, delta: float = 0.05, test: CountTest = pvalues.exact) -> float:
    """P(a certificate) with n units where the risk is `true`."""
    allowed = bounds.largest_count(count("n", n), alpha, delta, test=test)
    return binomial_tail(allowed, n, true) if allowed >= 0 else 0.0


def zero_loss_size(alpha: float, delta: float = 0.05) -> int:
    """Units that certify alpha where no loss occurs, by the exact test: ceil(ln(delta)/ln(1 - alpha))."""
    return math.ceil(math.log(probability("delta", delta)) / math.log1p(-probability("alpha", alpha)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Units from a change to the alarm."""

    alpha: float
    #: Units before the change.
    nu: int
    #: Risk after it, in units of alpha.
    factor: float
    mean: float
    p50: float | None
    #: Nine alarms in ten come within so many units.
    p90: float
    p95: float | None
    #: Where the numbers come from: table, simulation, rule of thumb.
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Simulated delays."""

    delay: Delay
    #: Every delay, ascending; those undetected count as `cap`.
    delays: tuple[int, ...]
    runs: int
    #: Runs that alarmed before the change: false alarms.
    early: int
    #: Runs without an alarm until `cap` units after it.
    undetected: int
    cap: int


@cache
def delay_table() -> tuple[Delay, ...]:
    """Delays of the design `spending` at delta .05 and a healthy risk of alpha/2; 1,500 simulated runs a row, standard error 2 to 3 %."""
    data = json.loads(resources.files("winnow.assurance").joinpath("power_table.json").read_text("utf-8"))
    return tuple(Delay(**dict(zip(data["columns"], row, strict=True)), source=f"table ({data['design']})") for row in data["rows"])


def tabulated(alpha: float, factor: float, nu: int) -> Delay | None:
    """The row of the table, None where there is none: nothing is interpolated."""
    return next((row for row in delay_table() if (row.alpha, row.factor, row.nu) == (alpha, factor, nu)), None)


def rule_of_thumb(alpha: float, factor: float, nu: int, *, delta: float = 0.05, streams: int = 1) -> Delay:
    """Delay by a formula that was fitted to the table, for nu >= 1,000 and shifts of at least 1.5 times.

    mean = (ln(1/delta) + 6.0 + .87 ln(1 + nu/25) - .98 ln(1/I))/I with I = KL(p||alpha), p = factor·alpha; K streams add ln(K)/I.
    p90 = mean + 1.28 sqrt(mean·V)/I with V = p(1 - p) ln(p(1 - alpha)/(alpha(1 - p)))^2.

    Its mean lies within 18 % of the table's, but at 1.5 times after 10,000 units it is up to 29 % too long: there, simulate.

    Raises:
        InvalidSample: outside those ranges, where the formula is wrong; simulate instead.
    """
    alpha, delta = probability("alpha", alpha), probability("delta", delta)
    p = factor * alpha
    if nu < 1_000 or factor < 1.5 or not alpha < p < 1:  # noqa: PLR2004  the range of the fit
        raise InvalidSample("the rule of thumb holds from nu = 1,000 and from 1.5 times alpha on, below a risk of 1; simulate instead")
    information = pvalues.kl(p, alpha)
    nats = math.log(1 / delta) + 6.0 + 0.87 * math.log1p(nu / 25) - 0.98 * math.log(1 / information) + math.log(count("streams", streams))
    mean = nats / information
    variance = p * (1 - p) * math.log(p * (1 - alpha) / (alpha * (1 - p))) ** 2
    p90 = mean + NormalDist().inv_cdf(POWER) * math.sqrt(mean * variance) / information
    return Delay(alpha=alpha, nu=nu, factor=factor, mean=mean, p50=None, p90=p90, p95=None, source="rule of thumb")


def simulated(
    config: MonitorConfig, *, healthy: float, factor: float, nu: int, rng: np.random.Generator, runs: int = 1_500, cap: int | None = None
) -> Simulation:
    """Delays of monitors of this configuration on binary losses: risk `healthy` for nu units, then factor times alpha.

    Runs that alarm before the change are false alarms and left out of the delays; those that have not alarmed `cap` units after it count
    as the cap (left out: 40 times the least possible mean delay).

    Raises:
        InvalidSample: the risks are not healthy < alpha < factor·alpha < 1, or the shift is too small to be simulated.
    """
    shifted = factor * config.alpha
    if not 0 <= healthy <= config.alpha < shifted < 1:
        raise InvalidSample(f"the healthy risk must be at most alpha = {config.alpha:g}, and {factor:g} times alpha above it and below 1")
    least = least_delay(config.alpha, factor, delta=1 / config.level)
    if least > LONGEST_DELAY:
        raise InvalidSample(f"no monitor sees such a shift in fewer than {least:.0f} units on average; plan for a larger one")
    cap = cap or math.ceil(40 * least) + 10
    [found] = simulation.delays(
        config, simulation.bernoulli(healthy), [simulation.bernoulli(shifted)], nu=nu, runs=count("runs", runs), rng=rng, cap=cap
    )
    return Simulation(
        delay=Delay(
            alpha=config.alpha,
            nu=nu,
            factor=factor,
            mean=found.mean,
            p50=found.quantile(0.5),
            p90=found.quantile(POWER),
            p95=found.quantile(0.95),
            source=f"{runs} simulated runs",
        ),
        delays=tuple(sorted(int(delay) for delay in found.units)),
        runs=runs,
        early=found.early,
        undetected=int((found.units >= cap).sum()),
        cap=cap,
    )


def least_delay(alpha: float, factor: float, *, delta: float = 0.05) -> float:
    """ln(1/delta)/KL(p||alpha): no monitor with this error budget has a smaller mean delay, even one that knows p and the time."""
    p = factor * probability("alpha", alpha)
    return math.log(1 / probability("delta", delta)) / pvalues.kl(probability("the risk after the change", p), alpha)
