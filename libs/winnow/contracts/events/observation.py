"""Losses for the drift monitor: `winnow.observation.v1`."""

from typing import Self
from uuid import UUID

from pydantic import Field, model_validator

from winnow.contracts.events.base import Event, Model, Moment, Name


class Sampled(Model):
    """That a unit was drawn for grading; said before any grading, so that missing grades can be counted."""

    probability: float = Field(gt=0, le=1, description="Probability with which the unit was drawn.")
    at: Moment = Field(description="When it was drawn, by the host's clock.")


class Graded(Model):
    """The loss of a sampled unit."""

    loss: float = Field(le=1, description="Loss in [lo, 1].")
    lo: float = Field(default=0.0, ge=-1, le=0, description="The smallest possible loss of this stream: 0, or -1 for paired differences.")
    grader: Name = Field(description="Who graded: a person, a model with version, a rule.")
    at: Moment = Field(description="When it was graded, by the grader's clock.")

    @model_validator(mode="after")
    def _in_range(self) -> Self:
        """The loss lies in [lo, 1]."""
        if self.loss < self.lo:
            msg = f"loss must lie in [{self.lo}, 1]"
            raise ValueError(msg)
        return self


class Observation(Event):
    """A unit was sampled, graded, or both. Units are runs (trajectories or sessions), never turns."""

    event_id: UUID = Field(description="A repetition with the same id is stored once.")
    stream: Name = Field(description="The stream it belongs to, and the record key.")
    unit: Name = Field(description="The run that is graded.")
    boundary_id: UUID | None = Field(default=None, description="The boundary of the run that it rests on.")
    sampled: Sampled | None = Field(default=None, description="The unit was drawn; said before any grading.")
    graded: Graded | None = Field(default=None, description="The unit was graded.")

    @model_validator(mode="after")
    def _something(self) -> Self:
        """At least one of both is said."""
        if self.sampled is None and self.graded is None:
            msg = "an observation is sampled, graded, or both"
            raise ValueError(msg)
        return self

    @property
    def said(self) -> tuple[object, ...]:
        """What a repetition says again; the same id with anything else is another event."""
        return self.stream, self.unit, self.boundary_id, self.sampled, self.graded

    @property
    def key(self) -> str:
        """Record key: `fleet/stream`, so that one stream is folded by one monitor, in order, and no fleet names another's."""
        return f"{self.fleet}/{self.stream}"
