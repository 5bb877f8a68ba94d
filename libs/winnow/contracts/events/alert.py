"""What operators are told: `winnow.alert.v1`."""

from uuid import UUID

from pydantic import Field

from winnow.contracts.events.base import Event, Model, Moment, Name
from winnow.contracts.vocabulary import AlertKind, Guarantee


class Attribution(Model):
    """A part of the evidence that the units of one group brought. An estimate without guarantee."""

    group: Name = Field(description="What the units have in common, for example `agent` or `boundary`.")
    value: str = Field(max_length=200, description="Which of them.")
    units: int = Field(ge=0, description="Units since the likely change.")
    losses: float = Field(description="Sum of their losses.")
    share: float = Field(description="Their part of the evidence since the likely change; negative where they spoke against it.")


class Alert(Event):
    """Evidence, likely change window, and what was done."""

    alert_id: UUID = Field(description="A repetition with the same id is the same alert.")
    kind: AlertKind = Field(description="What happened.")
    at: Moment = Field(description="When it happened.")
    stream: Name | None = Field(default=None, description="The stream that alarmed.")
    log_evidence: float | None = Field(default=None, description="Natural log of the e-value at the alarm.")
    change_window: tuple[int, int] | None = Field(default=None, description="Sequence numbers between which the change likely lies.")
    guarantee: Guarantee | None = Field(default=None, description="How far the evidence may be trusted; null where an act is told of.")
    attribution: tuple[Attribution, ...] = Field(default=(), description="Which units brought the evidence since the likely change.")
    because: str = Field(description="In plain words, no more than was shown.")
    done: str = Field(description="What Winnow did about it.")

    @property
    def key(self) -> str:
        """Record key: the fleet."""
        return self.fleet
