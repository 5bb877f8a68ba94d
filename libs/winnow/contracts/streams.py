"""Streams of losses: what the drift monitor is told of each, and the names that Winnow fills by itself."""

from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from winnow.contracts.events.base import Model
from winnow.contracts.vocabulary import Family, LabelFree, Missing

#: What the stream of a stream's missing grades is called: this, and the stream's name. No observation may use it.
MISSING_PREFIX = "missing:"


def family_of(stream: str) -> Family:
    """The family of a stream by its name."""
    return Family.LABEL_FREE if stream in set(LabelFree) or stream.startswith(MISSING_PREFIX) else Family.RISK


class StreamConfig(Model):
    """How a stream is watched. What is left out comes from the monitor's settings. A change opens a new epoch."""

    model_config = ConfigDict(extra="forbid")

    alpha: float | None = Field(default=None, ge=1e-4, lt=1, description="Risk budget: the alarm says that the risk is above it.")
    lo: Literal[0, -1] | None = Field(
        default=None, description="Smallest loss: 0, or -1 for paired differences. Left out: the first unit's."
    )
    binary: bool = Field(default=False, description="Losses are 0 or 1 (paired: -1, 0, 1) and nothing else.")
    mode: Literal["lifetime", "horizon", "arl"] = Field(default="lifetime", description="What of false alarms is bounded.")
    horizon: int | None = Field(default=None, ge=1, description="Units of an epoch in mode horizon.")
    arl: float | None = Field(default=None, gt=1, description="Mean units to a false alarm in mode arl, which has no guarantee for fleets.")
    warn_alpha: float | None = Field(default=None, gt=-1, lt=1, description="Budget of the warn level, below alpha. Left out: none.")
    min_probability: float | None = Field(
        default=None, gt=0, le=1, description="Smallest probability with which a unit is drawn. Left out: the first unit's."
    )
    missing: Missing | None = Field(default=None, description="What becomes of a unit without a grade. Left out: as set for the monitor.")
    watermark_s: float | None = Field(
        default=None, ge=0, description="Seconds that a unit waits for its grade before those behind it are folded. Left out: as set."
    )
    method: str | None = Field(default=None, min_length=1, max_length=40, description="Bets of the monitor by name. Left out: the default.")

    @model_validator(mode="after")
    def _below(self) -> Self:
        """The warning comes first."""
        if self.warn_alpha is not None and self.alpha is not None and self.warn_alpha >= self.alpha:
            msg = "warn_alpha must lie below alpha"
            raise ValueError(msg)
        return self
