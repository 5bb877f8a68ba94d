"""The terms of an epoch: from what a stream was registered with, and from its fleet's budgets, to the parameters of its monitor. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from winnow.assurance.config import MonitorConfig
from winnow.assurance.designs import DEFAULT
from winnow.assurance.ebh import joining_weight
from winnow.assurance.ledger import Epoch, Signature, Unit
from winnow.assurance.streams import epoch_delta
from winnow.contracts.streams import MISSING_PREFIX, StreamConfig, family_of
from winnow.contracts.vocabulary import Family, LabelFree, Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """What streams get that were registered without saying it. A stream keeps it from its first unit on: changes are for new ones."""

    #: Risk budget of graded streams.
    risk_alpha: float = 0.05
    #: Of the streams that Winnow fills by itself.
    label_free_alpha: Mapping[LabelFree, float] = field(
        default_factory=lambda: MappingProxyType(
            {
                LabelFree.RECOVERY: 0.05,
                LabelFree.UNJUDGED: 0.05,
                LabelFree.FALLBACK: 0.05,
                LabelFree.CANARY_KEPT: 0.3,
                LabelFree.CANARY_DROPPED: 0.1,
            }
        )
    )
    #: Of each stream's missing grades.
    missing_alpha: float = 0.1
    #: Error budget of a family's streams together, over the life of the fleet.
    delta: float = 0.03
    missing: Missing = Missing.FOLD
    #: Seconds that a unit waits for its grade.
    watermark_s: float = 600.0

    def alpha(self, stream: str) -> float:
        """Risk budget of a stream by its name."""
        if stream.startswith(MISSING_PREFIX):
            return self.missing_alpha
        return self.label_free_alpha[LabelFree(stream)] if family_of(stream) is Family.LABEL_FREE else self.risk_alpha


def settled(stream: str, said: StreamConfig, budgets: Budgets, first: Unit, current: MonitorConfig | None) -> StreamConfig:
    """The configuration with everything said: what is left out is as in the current epoch, else as set, else as the first unit is."""
    if all(getattr(said, name) is not None for name in _SETTLED):
        return said
    was = current.parameters() if current is not None else {}
    lo = first.lo if first.lo is not None else 0.0
    lo = int((said.lo if said.lo is not None else was.get("lo", lo)) or 0)
    fill: dict[str, Any] = {
        "alpha": was.get("alpha", budgets.alpha(stream)),
        "lo": lo,
        "min_probability": was.get("min_probability", first.probability),
        "missing": budgets.missing,
        "watermark_s": budgets.watermark_s,
        "method": was.get("method", DEFAULT),
    }
    return said.model_copy(update={name: value for name, value in fill.items() if getattr(said, name) is None})


def weight_of(position: int, number: int) -> float:
    """Share of a family's error budget of the epoch `number` of the stream that registered at `position`; all of them sum to 1."""
    return joining_weight(position) * epoch_delta(1.0, number)


def opened(config: StreamConfig, *, delta: float, position: int, number: int, from_seq: int, signature: Signature) -> Epoch:
    """An epoch of a settled configuration.

    Its alarm level is that of its own share: the family's delta, times the stream's place, times the epoch's share.

    Raises:
        InvalidConfig: the configuration cannot be run; the text names the parameter.
    """
    return Epoch(
        number=number,
        from_seq=from_seq,
        config=MonitorConfig(
            alpha=config.alpha or 0.0,
            lo=float(config.lo or 0),
            delta=delta,
            weight=weight_of(position, number),
            mode=config.mode,
            horizon=config.horizon,
            arl=config.arl,
            method=config.method or DEFAULT,
            min_probability=config.min_probability or 1.0,
            warn_alpha=config.warn_alpha,
            binary=config.binary,
        ),
        missing=config.missing or Missing.FOLD,
        signature=signature,
    )


#: What a settled configuration says.
_SETTLED = ("alpha", "lo", "min_probability", "missing", "watermark_s", "method")
#: What two epochs of one configuration have in common.
_TERMS = ("alpha", "lo", "mode", "horizon", "arl", "method", "min_probability", "warn_alpha", "binary")
#: Where None is a value of its own.
_MAY_BE_NONE = frozenset({"horizon", "arl", "warn_alpha"})


def changed(epoch: Epoch, config: StreamConfig) -> bool:
    """The configuration is another than the epoch's: what it leaves out is as it was."""
    was, now = epoch.config, config
    return any(
        said != getattr(was, name) for name in _TERMS if (said := getattr(now, name)) is not None or name in _MAY_BE_NONE
    ) or config.missing not in {None, epoch.missing}
