"""How streams are folded, and when a hold may end by itself."""

from dataclasses import dataclass, field

from winnow.assurance.terms import Budgets
from winnow.storage.alarms import Acting


@dataclass(frozen=True, slots=True, kw_only=True)
class Recertify:
    """When a hold may end by itself: the risk of fresh units is shown to be below `margin` times the budget, with an error of `delta`."""

    margin: float = 0.8
    delta: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How streams are folded."""

    budgets: Budgets = field(default_factory=Budgets)
    acting: Acting = field(default_factory=Acting)
    #: None: only people end a hold.
    recertify: Recertify | None = None
    #: Units of one stream in one transaction: what is behind by more catches up in several.
    limit: int = 1_000
