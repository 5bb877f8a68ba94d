"""What the runtime did: `winnow.runtime.v1`."""

from typing import Self
from uuid import UUID

from pydantic import Field, model_validator

from winnow.contracts.events.base import Event, Handle, Moment, Name, PartName
from winnow.contracts.vocabulary import Adopted, RuntimeEventKind


class RuntimeEvent(Event):
    """`adopted` is the truth about what an agent used; `bypassed` says that Winnow was not asked or not heard."""

    event_id: UUID = Field(description="A repetition with the same id is stored once.")
    run: Name = Field(description="The agent's session or trajectory.")
    kind: RuntimeEventKind = Field(description="What the runtime did.")
    at: Moment = Field(description="When it happened, by the host's clock.")
    boundary_id: UUID | None = Field(default=None, description="Required for adopted and bypassed.")
    adopted: Adopted | None = Field(default=None, description="For adopted: which text the agent goes on with.")
    handle: Handle | None = Field(default=None, description="For recovered: what was asked back.")
    part: PartName | None = Field(
        default=None, description="For recovered: `e` and the number of an entry of a candidate, or `m` and that of a message; null: all."
    )
    because: str | None = Field(default=None, max_length=500, description="For bypassed, and for adopted candidates: why.")
    recovery_tool: bool | None = Field(
        default=None, description="Whether the run's agent can ask back what was pruned; where nobody says, recovery is not observable."
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Each kind carries what it is about."""
        if self.kind is RuntimeEventKind.ADOPTED and (self.boundary_id is None or self.adopted is None):
            msg = "adopted needs boundary_id and adopted"
            raise ValueError(msg)
        if self.kind is RuntimeEventKind.BYPASSED and not self.because:
            msg = "bypassed needs because"
            raise ValueError(msg)
        if self.kind is RuntimeEventKind.RECOVERED and self.handle is None:
            msg = "recovered needs handle"
            raise ValueError(msg)
        return self

    @property
    def said(self) -> tuple[object, ...]:
        """What a repetition says again; the same id with anything else is another event."""
        # Of a recovery, the gateway and the runtime that asked both tell, each with what it knows of the run.
        if self.kind is RuntimeEventKind.RECOVERED:
            return self.kind, self.handle, self.part
        return self.kind, self.run, self.boundary_id, self.adopted

    @property
    def key(self) -> str:
        """Record key: `fleet/run`."""
        return f"{self.fleet}/{self.run}"
