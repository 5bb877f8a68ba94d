"""The drift monitor: evidence, one loss at a time, that the risk is above its budget; valid at every look.

The evidence M = cash + the capital of all bets starts at 1. While E[loss | past] <= alpha its conditional mean never rises (a non-negative
supermartingale), so by Ville's inequality it reaches 1/delta with probability at most delta, however often one looks. Capital that is
staked late (Shiryaev-Roberts, with a spending schedule) catches changes that come late. Formulas, numbers and papers: `docs/assurance.md`.

Everything here is pure. Linear space is safe: before a step M < level <= 1e12, one factor is at most 1 + .9/alpha <= 9,001, and new
stakes hold the capital up from below.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from winnow.assurance import seed
from winnow.assurance.blocks import BLOCK, Block, grown
from winnow.assurance.config import MonitorConfig
from winnow.assurance.refusals import OTHER_TERMS, EpochEnded, InvalidLoss, StateUnreadable

Status = Literal["ok", "warn", "alarm"]

#: log of the smallest evidence that is shown: that of the smallest positive double.
_FLOOR: Final = 5e-324


class State(NamedTuple):
    """What the monitor knows after n units. Once it has alarmed it never changes again.

    A named tuple, since a new one is made with every unit: a frozen dataclass of this size costs more than all of the arithmetic.
    """

    #: Fingerprint of the configuration that it belongs to.
    config: str
    #: Units folded.
    n: int
    #: Capital of each bet, fixed ones first.
    capital: tuple[float, ...]
    #: Of each following bet: forgotten sum of (x - alpha), and of its square.
    drift: tuple[float, ...]
    spread: tuple[float, ...]
    #: CUSUM of each waiting bet, at least 1.
    rise: tuple[float, ...]
    #: What is not staked yet.
    cash: float
    #: M, the evidence against "the risk is at most alpha": an e-value (not in mode `arl`).
    evidence: float
    #: Largest M so far. 1/peak is the always-valid p-value; it is no e-value and never stands in for M in e-BH.
    peak: float
    #: The unit, counted from 1, at which it alarmed.
    alarm_at: int | None
    #: The units so far in blocks, oldest first, and the newest that fill no block yet.
    blocks: tuple[Block, ...]
    open_total: float
    open_squares: float
    #: The warn level's own state.
    warn: "State | None"

    @property
    def log_evidence(self) -> float:
        """Natural log of the evidence; 0 at the start, slightly below 0 while all is well."""
        return math.log(max(self.evidence, _FLOOR))

    @property
    def p_value(self) -> float:
        """Always-valid p-value, min(1, 1/largest evidence)."""
        return min(1.0, 1.0 / self.peak) if self.peak > 0 else 1.0

    @property
    def warned_at(self) -> int | None:
        """The unit at which the warn level was crossed."""
        return self.warn.alarm_at if self.warn else None

    @property
    def status(self) -> Status:
        """`alarm`, `warn` or `ok`. `ok` is the absence of an alarm, not a proof that the budget is kept."""
        if self.alarm_at is not None:
            return "alarm"
        return "warn" if self.warned_at is not None else "ok"

    @property
    def history(self) -> tuple[Block, ...]:
        """All units in blocks, oldest first, the unfinished one included."""
        left = self.n % BLOCK
        return (*self.blocks, Block(left, self.open_total, self.open_squares)) if left else self.blocks


def initial(config: MonitorConfig) -> State:
    """The state before the first unit."""
    design = config.design
    if design is None:
        capital, drift, spread = [1.0], [0.0], [0.0]
    else:
        capital = [0.0] * len(design.weights)
        v0 = config.span * (1.0 - config.alpha)
        drift = [design.eager / config.span * design.calm * v0] * len(design.half_lives)
        spread = [0.0] * len(design.half_lives)
    rise = math.exp(design.head_start) if design else 1.0
    start = 0.0 if config.mode == "arl" else 1.0
    return State(
        config=config.fingerprint,
        n=0,
        capital=tuple(capital),
        drift=tuple(drift),
        spread=tuple(spread),
        rise=(rise,) * len(config.plan.waiting),
        cash=start if design else 0.0,
        evidence=start,
        peak=start,
        alarm_at=None,
        blocks=(),
        open_total=0.0,
        open_squares=0.0,
        warn=initial(config.warn) if config.warn else None,
    )


def update(config: MonitorConfig, state: State, loss: float, probability: float = 1.0) -> State:
    """Fold one unit's loss; see `fold`, to which a unit at a time is equal to the bit."""
    # The common case without `fold`'s lists, in half the time: a float in range, nothing but bets, drawn as often as any.
    if type(loss) is float and config.plan.plain and config.lo <= loss <= 1.0 and probability == 1.0 and state.config == config.fingerprint:
        return state if state.alarm_at is not None else _mixture(config, state, (loss,), None)
    return fold(config, state, (loss,), (probability,))


def fold(config: MonitorConfig, state: State, losses: Iterable[float], probabilities: Sequence[float] | None = None) -> State:
    """Fold losses in sampling order and return the new state; equal to the bit however the losses are cut into calls.

    Stops at the unit that alarms: the state of a stream that has alarmed is returned as it is. A unit that was drawn with probability pi
    counts as min_probability·(x - alpha)/pi, whose mean over the coin is proportional to E[x] - alpha; units that were not drawn are not
    folded. `probabilities` left out: each 1.

    Raises:
        InvalidLoss: a loss is no finite number in [lo, 1], or a probability is outside [min_probability, 1]. Nothing of this call is kept.
        EpochEnded: the horizon was reached before the last loss. Nothing of this call is kept.
        StateUnreadable: the state belongs to another configuration.
    """
    if state.config != config.fingerprint:
        raise StateUnreadable(OTHER_TERMS)
    given = losses if isinstance(losses, list) else list(losses)
    ready = given if _all_fine(config, given) else [checked(config, loss) for loss in given]
    scales = _scales(config, ready, probabilities)
    return state if state.alarm_at is not None else _folded(config, state, ready, scales)


def _all_fine(config: MonitorConfig, losses: list[float]) -> bool:
    """Every loss is a float that `checked` would return as it is; a few passes in C, a tenth of a call each. False also where in doubt."""
    if not losses or set(map(type, losses)) != {float}:
        return False
    if config.binary:
        return set(losses) <= {config.lo, 0.0, 1.0}
    # A NaN may be neither the least nor the largest, but it is in the sum.
    return config.lo <= min(losses) and max(losses) <= 1.0 and math.isfinite(sum(losses))


def freeze(state: State) -> State:
    """Freeze a stream that alarmed by a level shared with others (see `streams`) at the evidence it has now."""
    return state if state.alarm_at is not None else state._replace(alarm_at=state.n)


def checked(config: MonitorConfig, loss: object) -> float:
    """The loss as a float.

    Raises:
        InvalidLoss: it is no number in [lo, 1]; the text says what was given.
    """
    if isinstance(loss, bool):
        if not config.binary:
            raise InvalidLoss(f"{loss} is no number; a stream of yes and no must be declared binary")
    elif not isinstance(loss, int | float):
        raise InvalidLoss(f"a loss must be a number, not {type(loss).__name__}")
    if not config.lo <= loss <= 1:  # NaN and infinities too
        raise InvalidLoss(f"loss {_short(loss)} is outside [{config.lo:g}, 1]")
    if config.binary and loss not in {config.lo, 0, 1}:
        raise InvalidLoss(f"loss {_short(loss)} in a stream that was declared binary; declare it graded or correct the grader")
    return float(loss)


def _short(loss: float) -> str:
    """The number as text that stays short: a whole number may have a million digits."""
    return "beyond 1e300" if abs(loss) > 1e300 else f"{loss:.17g}"  # noqa: PLR2004  near the end of a double's range


def _scales(config: MonitorConfig, losses: Sequence[float], probabilities: Sequence[float] | None) -> list[float] | None:
    """min_probability/probability of each unit; None where all are 1."""
    least = config.min_probability
    if probabilities is None:
        return [least] * len(losses) if least < 1 else None
    if len(probabilities) != len(losses):
        raise InvalidLoss("there must be one probability for each loss")
    if least == 1 and set(map(type, probabilities)) == {float} and set(probabilities) == {1.0}:  # nearly always, in two passes
        return None
    if not all(_probability(p, least) for p in probabilities):
        raise InvalidLoss(f"the sampling probability of a unit must lie in [min_probability, 1] = [{least:g}, 1]")
    return [least / probability for probability in probabilities] if least < 1 else None


def _probability(value: object, least: float) -> bool:
    """Whether a unit can have been drawn with it."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= 1


def _folded(config: MonitorConfig, state: State, losses: Sequence[float], scales: Sequence[float] | None) -> State:
    """Fold losses that were checked, up to the alarm."""
    if config.horizon is not None and state.n + len(losses) > config.horizon:
        raise EpochEnded
    found = (_mixture if config.design else _seed)(config, state, losses, scales)
    if found.warn is not None and config.warn is not None and found.warn.alarm_at is None:
        return found._replace(warn=_folded(config.warn, found.warn, losses[: found.n - state.n], scales))
    return found


def _mixture(  # noqa: C901  one loop without calls: what a call a bet costs, a hundred thousand streams pay
    config: MonitorConfig, state: State, losses: Sequence[float], scales: Sequence[float] | None
) -> State:
    """The recursion over a design's bets."""
    name, n, capitals, drifts, spreads, rises, cash, evidence, peak, _, blocks, total, squares, warn = state
    capital, drift, spread, rise = list(capitals), list(drifts), list(spreads), list(rises)
    alpha, level, plan = config.alpha, config.level, config.plan
    stakes, following, waiting, most, prior, block = plan.stakes, plan.following, plan.waiting, plan.most, plan.prior, plan.block
    at, alarm = -1, None
    for x in losses:
        at += 1
        if not block or not n % block:
            stake, cash, shares = _stake(config, n)
            capital = [r + stake * share for r, share in zip(capital, shares, strict=True)]
        y = x - alpha
        if scales is not None:
            y *= scales[at]
        evidence = cash
        for place, lam in stakes:
            capital[place] = r = capital[place] * (1.0 + lam * y)
            evidence += r
        for i, place, rho in following:
            s = drift[i]
            r = capital[place]
            if s > 0.0:
                lam = s / (prior + spread[i])
                capital[place] = r = r * (1.0 + (lam if lam < most else most) * y)  # noqa: FURB136  min() would be a call
            evidence += r
            drift[i] = rho * s + y
            spread[i] = rho * spread[i] + y * y
        for i, place, lam, patience in waiting:
            factor = 1.0 + lam * y
            r = capital[place]
            g = rise[i]
            if g > patience:
                capital[place] = r = r * factor
            evidence += r
            g *= factor
            rise[i] = g if g > 1.0 else 1.0  # noqa: FURB136  the same
        n += 1
        total += x
        squares += x * x
        if not n % BLOCK:
            blocks = grown(blocks, Block(BLOCK, total, squares))
            total = squares = 0.0
        if evidence > peak:
            peak = evidence
            if evidence >= level:
                alarm = n
                break
    # _make takes half the time of the constructor, which parses fourteen arguments.
    return State._make(
        (name, n, tuple(capital), tuple(drift), tuple(spread), tuple(rise), cash, evidence, peak, alarm, blocks, total, squares, warn)
    )


def _stake(config: MonitorConfig, n: int) -> tuple[float, float, tuple[float, ...]]:
    """What is staked before unit n + 1, the cash that is left, and each bet's share."""
    design = config.design
    if design is None:
        raise StateUnreadable("this state has no bets")
    shares = design.weights if n else design.opening
    if config.mode == "arl":
        return 1.0, 0.0, shares
    if config.horizon is not None:
        return 1.0 / config.horizon, 1.0 - (n + 1) / config.horizon, shares
    return *design.schedule.stake(n // design.schedule.block), shares


def _seed(config: MonitorConfig, state: State, losses: Sequence[float], _: Sequence[float] | None) -> State:
    """The published rule."""
    found = (state.capital[0], state.drift[0], state.spread[0])
    n, peak, alarm = state.n, state.peak, None
    blocks, total, squares = state.blocks, state.open_total, state.open_squares
    for x in losses:
        found = seed.step(config.alpha, config.delta * config.weight, config.lo, n, found, x)
        n += 1
        total += x
        squares += x * x
        if not n % BLOCK:
            blocks = grown(blocks, Block(BLOCK, total, squares))
            total = squares = 0.0
        peak = max(peak, found[0])
        if found[0] >= config.level:
            alarm = n
            break
    capital, drift, spread = found
    return State(
        state.config, n, (capital,), (drift,), (spread,), (), 0.0, capital, peak, alarm, blocks, total, squares, state.warn
    )  # fmt: skip
