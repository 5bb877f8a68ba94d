"""The boundary as the host sees it: `winnow.boundary.candidate.v1`."""

import json
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field, StringConstraints, field_validator, model_validator

from winnow.contracts import ids, limits
from winnow.contracts.events.base import ClaimCheck, Event, Model, Moment, Name, Sha256, sha256
from winnow.contracts.vocabulary import MessageKind, Mode, Origin, Rules, Trigger


class Message(Model):
    """One message of the span H or of the retained interaction R."""

    i: int = Field(ge=0, le=limits.MAX_NUMBER, description="Number of the message in the run; explanations cite it as `output #i`.")
    kind: MessageKind = Field(description="Who speaks.")
    text: str = Field(description="What was said; tool calls stand in the action text as `[tool call] name: {arguments}`.")
    origin: Origin = Field(default=Origin.OBSERVATION, description="For environment messages: what the output really is.")
    tool: Name | None = Field(default=None, description="The tool of an output.")
    call_id: Name | None = Field(default=None, description="The call that an output answers.")
    is_error: bool = Field(default=False, description="The tool reported a failure.")


class Messages(Model):
    """H and R: what a claim check holds where a candidate is above the topic's limit."""

    history: tuple[Message, ...] = Field(default=(), max_length=limits.MAX_MESSAGES, description="The span H that the summary replaces.")
    retained: tuple[Message, ...] = Field(
        default=(), max_length=limits.MAX_MESSAGES, description="The retained interaction R: the last action with its output."
    )

    def content(self) -> bytes:
        """Canonical bytes: what is stored as the original `history`, hashed and claim-checked."""
        return self.model_dump_json(exclude_defaults=True).encode()


def _whole(value: object) -> int | None:
    """The number that `index` is read as, so that 2, 2.0 and "2" give one boundary id; None where it will be refused."""
    try:
        return int(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None


class Candidate(Event):
    """A compaction boundary: what the agent knew, and the summary that its compressor wrote."""

    boundary_id: UUID = Field(description="Unique within the fleet. Left out: UUIDv5 of fleet, run, index and candidate hash.")
    previous_boundary_id: UUID | None = Field(
        default=None, description="The boundary that wrote the previous summary, if the host knows it."
    )
    run: Name = Field(description="The agent's session or trajectory; order is kept within a run.")
    agent: Name = Field(default="agent", description="The agent within the fleet.")
    index: int = Field(ge=1, le=limits.MAX_NUMBER, description="Number of this boundary in the run, from 1.")
    boundary_at: Moment | None = Field(default=None, description="When the boundary was reached, by the host's clock.")
    host: Name | None = Field(default=None, description="The agent runtime, for example `openclaw`.")
    profile: Name | None = Field(default=None, description="Summary format; left out: the host's, else detected.")
    trigger: Trigger = Field(default=Trigger.THRESHOLD, description="Why the host compacts.")
    mode: Mode = Field(default=Mode.SHADOW, description="The most that may happen; the fleet's operating point may be milder.")
    rules: Rules = Field(default=Rules.WINNOW, description="Which system judges this boundary.")
    deadline: Moment | None = Field(default=None, description="After it the agent goes on with its own candidate.")
    task: str = Field(default="", description="Task prompt P. Context for the judge, never a source.")
    history: tuple[Message, ...] = Field(default=(), max_length=limits.MAX_MESSAGES, description="The span H that the summary replaces.")
    retained: tuple[Message, ...] = Field(default=(), max_length=limits.MAX_MESSAGES, description="The retained interaction R.")
    messages: ClaimCheck | None = Field(default=None, description="H and R as a stored original, instead of inline.")
    previous_summary: str | None = Field(default=None, description="Previous summary M, exactly as the agent carried it.")
    previous_sha256: Sha256 | None = Field(default=None, description="Hash of M; verified where given.")
    candidate: str = Field(description="The summary that the compressor wrote, after every truncation of the host.")
    candidate_sha256: Sha256 = Field(description="Hash of the candidate; computed where left out, verified where given.")
    pins: tuple[Annotated[str, StringConstraints(min_length=1)], ...] = Field(
        default=(), max_length=limits.MAX_PINS, description="Host pins: an entry that holds one of these texts is never pruned."
    )
    custom_instructions: str | None = Field(default=None, description="What the user asked of the compressor.")
    compressor: Name | None = Field(default=None, description="The compressor model.")
    tokens_before: int | None = Field(
        default=None, ge=0, le=limits.MAX_NUMBER, description="The host's count of the context before compaction."
    )
    tokens_after: int | None = Field(default=None, ge=0, le=limits.MAX_NUMBER, description="The host's count after it.")
    user_turns_survive: bool | None = Field(
        default=None, description="User turns stay visible after compaction. Left out: the profile's default."
    )

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: Any) -> Any:  # noqa: ANN401  what a before-validator gets is anything at all
        """Fill the candidate hash and the boundary id where the caller left them out."""
        if not isinstance(data, dict) or not isinstance(data.get("candidate"), str):
            return data
        data = dict(data)
        if data.get("candidate_sha256") is None:
            data["candidate_sha256"] = sha256(data["candidate"])
        index = _whole(data.get("index"))
        if data.get("boundary_id") is None and index is not None and "fleet" in data and "run" in data:
            data["boundary_id"] = ids.boundary_id(str(data["fleet"]), str(data["run"]), index, data["candidate_sha256"])
        return data

    @field_validator("candidate", "task", "previous_summary", "custom_instructions")
    @classmethod
    def _encodable(cls, value: str | None) -> str | None:
        """Refuse lone surrogates: they have no UTF-8 bytes, so no hash could bind them."""
        if value is not None:
            value.encode()
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Hashes match their texts; messages are inline or claim-checked, not both; the claim is this fleet's."""
        if sha256(self.candidate) != self.candidate_sha256:
            msg = "candidate_sha256 is not the hash of candidate"
            raise ValueError(msg)
        if self.previous_sha256 is not None and sha256(self.previous_summary or "") != self.previous_sha256:
            msg = "previous_sha256 is not the hash of previous_summary"
            raise ValueError(msg)
        if self.messages is not None and (self.history or self.retained):
            msg = "give history and retained, or messages, not both"
            raise ValueError(msg)
        if self.messages is not None and self.messages.fleet != self.fleet:
            msg = "the claim check belongs to another fleet"
            raise ValueError(msg)
        if len(self.candidate) > limits.SUMMARY_BYTES or len(self.candidate.encode()) > limits.SUMMARY_BYTES:
            msg = f"candidate is longer than {limits.SUMMARY_BYTES} bytes"
            raise ValueError(msg)
        return self

    @property
    def key(self) -> str:
        """Record key: `fleet/run`."""
        return f"{self.fleet}/{self.run}"

    def inline_messages(self) -> Messages:
        """H and R as they stand in the event; empty where a claim check stands for them."""
        return Messages(history=self.history, retained=self.retained)

    def request_sha256(self, messages_sha256: str | None = None) -> str:
        """Hash of what is asked. Deadline, trigger, counts and times are left out: a retry is the same request.

        `messages_sha256` is the hash of `Messages.content()`; the claim check states it, else it is computed here, so that the
        same content inline and by claim check is one request.
        """
        if messages_sha256 is None:
            messages_sha256 = self.messages.sha256 if self.messages else sha256(self.inline_messages().content())
        asked = [
            self.fleet, self.run, self.agent, self.index, self.host, self.profile, self.mode, self.rules, sha256(self.task),
            messages_sha256, None if self.previous_summary is None else sha256(self.previous_summary), self.candidate_sha256, self.pins,
            self.custom_instructions, self.compressor, self.user_turns_survive,
        ]  # fmt: skip
        return sha256(json.dumps(asked, ensure_ascii=True, separators=(",", ":")))
