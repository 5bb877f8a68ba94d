"""What all events share: frozen models, strict names, and texts that travel inline or by handle."""

import hashlib
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from winnow.contracts import limits


def _on_the_calendar(value: datetime) -> datetime:
    """Refuse moments that have no year in UTC: they could be neither stored nor compared."""
    if MINYEAR < value.year < MAXYEAR:  # no offset is a day
        return value
    try:
        value.astimezone(UTC)
    except OverflowError:
        msg = "must lie between the years 1 and 9999 in UTC"
        raise ValueError(msg) from None
    return value


#: A moment with its offset from UTC.
Moment = Annotated[AwareDatetime, AfterValidator(_on_the_calendar)]
#: A fleet: one tenant's agents of one kind. Lower case, so that it can be part of a role or metric name.
Fleet = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]


def _no_controls(value: str) -> str:
    """Refuse control characters: names end up in record keys, log lines and terminal tables."""
    if not value.isprintable():
        msg = "must not contain control characters"
        raise ValueError(msg)
    return value


#: A run, agent, host, tool or stream name as its owner writes it.
Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_no_controls)]
#: SHA-256 of the UTF-8 bytes of a text, lower-case hex.
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
#: A random, fleet-bound name of a stored original.
Handle = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{22,64}$")]
#: Part of an original: `e` and the number of an entry, or `m` and the number of a message (see `contracts.places`).
PartName = Annotated[str, StringConstraints(pattern=r"^[em][0-9]{1,9}$")]


def sha256(content: str | bytes) -> str:
    """SHA-256 in lower-case hex of `content`, a text taken as UTF-8."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


class Model(BaseModel):
    """Base of all values that cross a process boundary: frozen, unknown fields ignored (v1 only grows)."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants", allow_inf_nan=False)


class Event(Model):
    """Base of all event bodies. `fleet` is the tenant; everything is keyed by it."""

    fleet: Fleet = Field(description="The tenant's fleet of agents.")


class ClaimCheck(Model):
    """A stored original that an event refers to because the content is above the topic's limit."""

    fleet: Fleet = Field(description="The fleet the original belongs to; another fleet's handle is refused.")
    handle: Handle = Field(description="Random handle, as returned by the gateway when the original was stored.")
    sha256: Sha256 = Field(description="Hash of the exact bytes; a mismatch is rejected.")
    size: int = Field(ge=0, description="Length in bytes.")


class Text(Model):
    """A text that travels inline up to 64 KiB and by handle above."""

    sha256: Sha256 = Field(description="Hash of the UTF-8 bytes.")
    size: int = Field(ge=0, description="Length in UTF-8 bytes.")
    text: str | None = Field(default=None, description="The text, where it is at most 64 KiB.")
    handle: Handle | None = Field(default=None, description="Handle of the original, where the text is longer.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        """Exactly one of text and handle is there."""
        if (self.text is None) == (self.handle is None):
            msg = "exactly one of text and handle must be given"
            raise ValueError(msg)
        return self

    @classmethod
    def of(cls, text: str, handle: str | None = None) -> Self:
        """Wrap `text`: inline up to the limit, else by `handle` (which must then be given)."""
        data = text.encode()
        if len(data) <= limits.INLINE_TEXT_BYTES or handle is None:
            return cls(sha256=sha256(data), size=len(data), text=text)
        return cls(sha256=sha256(data), size=len(data), handle=handle)


class JudgeId(Model):
    """Which judge gave a score; scores are never compared across versions."""

    name: Name = Field(description="Judge adapter: local, jev, anthropic, self, ensemble.")
    version: Name = Field(description="Version of coefficients and text processing, or of the adapter's layout.")
    model: Name | None = Field(default=None, description="The remote model that answered, as it names itself.")


class BoundaryRef(Event):
    """The fields by which every stage's event names its boundary."""

    run: Name = Field(description="The agent's session or trajectory; order is kept within a run.")
    boundary_id: UUID = Field(description="Unique within the fleet.")
    request_sha256: Sha256 = Field(description="Hash of what was asked; the same id with another hash is a conflict.")
    candidate_sha256: Sha256 = Field(description="Hash of the candidate summary: the bytes judged are the bytes committed.")
    operating_point: int = Field(ge=0, description="The operating point that the retriever stamped on this boundary.")
    deadline: Moment | None = Field(default=None, description="After it the agent has gone on with its own candidate.")

    @property
    def key(self) -> str:
        """Record key: `fleet/run`."""
        return f"{self.fleet}/{self.run}"
