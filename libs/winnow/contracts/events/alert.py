"""What operators are told: `winnow.alert.v1`."""

from uuid import UUID

from pydantic import Field

from winnow.contracts.events.base import Event, Moment, Name
from winnow.contracts.vocabulary import AlertKind


class Alert(Event):
    """Evidence, likely change window, and what was done."""

    alert_id: UUID = Field(description="A repetition with the same id is the same alert.")
    kind: AlertKind = Field(description="What happened.")
    at: Moment = Field(description="When it happened.")
    stream: Name | None = Field(default=None, description="The stream that alarmed.")
    log_evidence: float | None = Field(default=None, description="Natural log of the e-value at the alarm.")
    change_window: tuple[int, int] | None = Field(default=None, description="Sequence numbers between which the change likely lies.")
    because: str = Field(description="In plain words, no more than was shown.")
    done: str = Field(description="What Winnow did about it.")

    @property
    def key(self) -> str:
        """Record key: the fleet."""
        return self.fleet
