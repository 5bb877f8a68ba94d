"""What a monitor is asked to watch, checked once."""

import hashlib
import json
import math
from dataclasses import dataclass, field
from typing import Final, Literal

from winnow.assurance.designs import DEFAULT, DESIGNS, METHODS, SEED, Design
from winnow.assurance.refusals import InvalidConfig

Mode = Literal["lifetime", "horizon", "arl"]
Guarantee = Literal["anytime", "arl"]

#: Smallest alpha and delta: below, one factor times the level could leave the range of a double (see `monitor`).
SMALLEST_ALPHA: Final = 1e-4
SMALLEST_DELTA: Final = 1e-12
#: Version of the update's arithmetic, part of every fingerprint; raised whenever the same losses could come out as another evidence.
ARITHMETIC: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The constants of a design under a budget."""

    #: Place and lam of each fixed bet.
    stakes: tuple[tuple[int, float], ...]
    #: Of each following bet: its number among them, its place among all bets, and what one unit leaves of its memory.
    following: tuple[tuple[int, int, float], ...]
    #: Of each waiting bet: its number among them, its place among all bets, its lam, and the CUSUM that it waits for.
    waiting: tuple[tuple[int, int, float, float], ...]
    #: Largest lam of a following bet.
    most: float
    #: Its prior, as a variance.
    prior: float
    #: Units between two stakes; 0: every unit.
    block: int
    #: Nothing but bets: no horizon, no warn level, no sampling probabilities, no declared values.
    plain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorConfig:
    """A monitor's parameters. Two that differ in any of them never share a state.

    Raises:
        InvalidConfig: a parameter is out of range; the text names it.
    """

    #: Risk budget: the monitor bets against E[loss | past] <= alpha.
    alpha: float
    #: Error budget: chance of an alarm, ever (`lifetime`) or within the horizon, while the budget is kept. Not used by `arl`.
    delta: float = 0.05
    #: Smallest loss: 0, or -1 for paired differences.
    lo: float = 0.0
    #: `lifetime`: false alarms bounded for ever; `horizon`: within `horizon` units; `arl`: only the mean time to one, at least `arl` units.
    mode: Mode = "lifetime"
    #: Units of an epoch in mode `horizon`.
    horizon: int | None = None
    #: Mean units to a false alarm in mode `arl`.
    arl: float | None = None
    #: Which bets (see `designs`); `seed` is the published rule, for comparison.
    method: str = DEFAULT
    #: Share of `delta` that this stream may spend where several share it, 0 < weight <= 1; fixed at registration.
    weight: float = 1.0
    #: Smallest sampling probability of the stream; evidence is scaled by it over a unit's own (see `monitor.update`).
    min_probability: float = 1.0
    #: Budget of the warn level, lo < warn_alpha < alpha: a second monitor with the same guarantee for it. None: no warn level.
    warn_alpha: float | None = None
    #: Bets of one's own in place of the method's, for experiments; `method` is then no more than their name.
    bets: Design | None = None
    #: Losses are 0 or 1 (paired: -1, 0 or 1) and nothing else; then booleans are understood too.
    binary: bool = False

    #: The design's constants; None for `seed`.
    design: Design | None = field(init=False, repr=False, compare=False)
    #: alpha - lo.
    span: float = field(init=False, repr=False, compare=False)
    #: Evidence at which the monitor alarms: 1/(delta·weight), or `arl`.
    level: float = field(init=False, repr=False, compare=False)
    #: What every update needs, worked out once.
    plan: "Plan" = field(init=False, repr=False, compare=False)
    #: Hash of every parameter and of the version of the bets; a state carries it.
    fingerprint: str = field(init=False, repr=False, compare=False)
    #: The warn level as a monitor of its own.
    warn: "MonitorConfig | None" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check, and derive what each update needs."""
        self._check()
        set_ = object.__setattr__
        design = self.bets or DESIGNS.get(self.method)
        span = self.alpha - self.lo
        set_(self, "design", design)
        set_(self, "span", span)
        set_(self, "level", float(self.arl) if self.arl is not None else 1.0 / (self.delta * self.weight))
        set_(self, "plan", _plan(self, design))
        set_(self, "fingerprint", _fingerprint(self))
        warn = None if self.warn_alpha is None else self._with_alpha(self.warn_alpha)
        set_(self, "warn", warn)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee class of the alarm: `anytime`, or `arl`, whose evidence is no e-value and never enters e-BH."""
        return "arl" if self.mode == "arl" else "anytime"

    def parameters(self) -> dict[str, float | int | str | bool | None]:
        """Everything that was chosen, for a record or a table."""
        return {name: getattr(self, name) for name in _CHOSEN}

    def _with_alpha(self, alpha: float) -> "MonitorConfig":
        """The same monitor against another budget, without a warn level."""
        chosen = {name: getattr(self, name) for name in _CHOSEN} | {"alpha": alpha, "warn_alpha": None}
        return MonitorConfig(bets=self.bets, **chosen)

    def _check(self) -> None:
        """Refuse what has no meaning or no guarantee."""
        for name, value in (("alpha", self.alpha), ("delta", self.delta), ("lo", self.lo), ("weight", self.weight)):
            _number(name, value)
        _number("min_probability", self.min_probability)
        _require(self.lo in {0, -1}, "lo must be 0, or -1 for paired differences")
        _require(SMALLEST_ALPHA <= self.alpha < 1, f"alpha must lie in [{SMALLEST_ALPHA}, 1)")
        _require(0 < self.delta < 1, "delta must lie in (0, 1)")
        _require(0 < self.weight <= 1, "weight must lie in (0, 1]")
        _require(self.delta * self.weight >= SMALLEST_DELTA, f"delta times weight must be at least {SMALLEST_DELTA}")
        _require(0 < self.min_probability <= 1, "min_probability must lie in (0, 1]")
        _require(self.bets is not None or self.method in METHODS, f"method must be one of {', '.join(METHODS)}")
        _require(self.mode in {"lifetime", "horizon", "arl"}, "mode must be lifetime, horizon or arl")
        _require(self.method != SEED or self.mode == "lifetime", "the seed rule has no other mode than lifetime")
        _require(
            self.method != SEED or self.min_probability == 1, "the seed rule knows no sampling probabilities; leave min_probability at 1"
        )
        if self.mode == "horizon":
            _require(_whole(self.horizon), "mode horizon needs horizon, the number of units of an epoch, at least 1")
        else:
            _require(self.horizon is None, "horizon belongs to mode horizon; leave it out or choose that mode")
        if self.mode == "arl":
            _number("arl", self.arl)
            _require(1 < (self.arl or 0) <= 1 / SMALLEST_DELTA, "mode arl needs arl, the mean number of units to a false alarm, above 1")
        else:
            _require(self.arl is None, "arl belongs to mode arl; leave it out or choose that mode")
        if self.warn_alpha is not None:
            _number("warn_alpha", self.warn_alpha)
            _require(SMALLEST_ALPHA <= self.warn_alpha < self.alpha, "warn_alpha must lie below alpha: the warning comes first")


#: The parameters that were chosen, as against those derived from them.
_CHOSEN: Final = (
    "alpha", "delta", "lo", "mode", "horizon", "arl", "method", "weight", "min_probability", "warn_alpha", "binary",
)  # fmt: skip


def _plan(config: MonitorConfig, design: Design | None) -> Plan:
    """Work out the constants; empty for the seed rule, which has its own."""
    if design is None:
        return Plan(stakes=(), following=(), waiting=(), most=0.0, prior=0.0, block=0, plain=False)
    fixed = len(design.fixed)
    awake = fixed + len(design.half_lives)
    waiting = zip(design.waiting, design.patience, strict=True)
    return Plan(
        stakes=tuple((i, design.lam(size, config.alpha, config.lo)) for i, size in enumerate(design.fixed)),
        following=tuple((i, fixed + i, 2.0 ** (-1.0 / half)) for i, half in enumerate(design.half_lives)),
        waiting=tuple((i, awake + i, design.lam(s, config.alpha, config.lo), math.exp(nats)) for i, (s, nats) in enumerate(waiting)),
        most=design.reach / config.span,
        prior=design.calm * config.span * (1.0 - config.alpha),
        block=design.schedule.block if config.mode == "lifetime" else 0,
        plain=config.horizon is None and config.warn_alpha is None and config.min_probability == 1 and not config.binary,
    )


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001  reads as a sentence where it is called
    """Refuse with a sentence unless it holds."""
    if not holds:
        raise InvalidConfig(otherwise)


def _number(name: str, value: object) -> None:
    """Refuse what is no finite number."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    _require(number and math.isfinite(value), f"{name} must be a finite number")  # type: ignore[arg-type]  # a number by now


def _whole(value: object) -> bool:
    """Whether it is a whole number from 1 on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _fingerprint(config: MonitorConfig) -> str:
    """Sixteen hexadecimal digits over all parameters, the constants of the bets and the version of the arithmetic."""
    said = {name: repr(float(v)) if isinstance(v := getattr(config, name), int | float) else v for name in _CHOSEN}
    text = json.dumps({"arithmetic": ARITHMETIC, "design": repr(config.design), **said}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
