"""From the turns of one session to its compaction boundaries: what each summary replaced, what stayed, what stood before."""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from winnow.client.readers.rows import Fault
from winnow.contracts import limits
from winnow.contracts.vocabulary import MessageKind, Origin, Trigger

#: Compactions of one session that are read. A year of hourly ones would be 8,760; more than a thousand in one file is a loop or an attack.
CUTS = 1_000
#: Messages that the boundaries of one session tell together. Where a host keeps all messages beside each summary, every boundary tells all.
TOLD = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a session, as the agent's context holds it."""

    kind: MessageKind
    text: str
    key: str = ""  # the host's id of the row that it came from
    tool: str | None = None
    call_id: str | None = None
    is_error: bool = False
    origin: Origin = Origin.OBSERVATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A compaction: from here on the summary stands for all turns but those that were kept."""

    place: str
    summary: str
    #: Keys of the turns that stay beside the summary.
    kept: Collection[str] = ()
    #: Key of a turn that stays with all that follow it; where no turn has it, none stays by it.
    kept_from: str | None = None
    trigger: Trigger | None = None
    tokens_before: int | None = None
    at: str | None = None
    compressor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """The host took back the last user turns, with all that followed them."""

    turns: int


Item = Turn | Cut | Rewind | Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """One compaction boundary of a recorded session, ready to be judged or submitted."""

    place: str
    host: str
    run: str
    index: int
    task: str
    previous: str | None
    history: tuple[dict[str, Any], ...]
    retained: tuple[dict[str, Any], ...]
    candidate: str
    about: dict[str, Any] = field(default_factory=dict)  # trigger, tokens_before, boundary_at, compressor, where the host says

    def line(self) -> str:
        """The boundary as a line of JSON, as `winnow judge` and `winnow submit` take it."""
        value = {
            "id": f"{self.run}#{self.index}",
            "run": self.run,
            "index": self.index,
            "host": self.host,
            "task": self.task,
            "previous_summary": self.previous,
            "candidate_summary": self.candidate,
            "history": self.history,
            "retained": self.retained,
            **self.about,
        }
        return json.dumps(value, separators=(",", ":"))


def boundaries(items: Iterable[Item], *, host: str, run: str) -> Iterator[Boundary | Fault]:
    """The boundaries of one session in order; faults pass through. A cut without a summary resets the context and is a fault.

    The task is the first user turn: the hosts' own system prompts are not the user's task, and few of them are recorded.
    """
    context: list[tuple[int, Turn]] = []
    number = index = told = 0
    task = ""
    previous: str | None = None
    for item in items:
        match item:
            case Fault():
                yield item
            case Turn():
                if not item.text.strip():
                    continue
                task = task or (item.text if item.kind is MessageKind.USER else "")
                context.append((number, item))
                number += 1
            case Rewind():
                context = _rewound(context, item.turns)
            case Cut():
                told += len(context)
                if index >= CUTS or told > TOLD:
                    yield Fault(
                        place=item.place, text=f"more than {CUTS} compactions, or {TOLD} messages in them; what follows is left out"
                    )
                    return
                stays = _stays(context, item)
                history = [one for one, kept in zip(context, stays, strict=True) if not kept]
                retained = [one for one, kept in zip(context, stays, strict=True) if kept]
                index += 1
                made = Boundary(
                    place=item.place,
                    host=host,
                    run=run,
                    index=index,
                    task=task,
                    previous=previous,
                    history=tuple(_message(*one) for one in history),
                    retained=tuple(_message(*one) for one in retained),
                    candidate=item.summary,
                    about=_about(item),
                )
                yield _fit(made)
                context, previous = retained, item.summary or None


def _stays(context: list[tuple[int, Turn]], cut: Cut) -> list[bool]:
    """Which turns stay beside the summary."""
    tail = next((i for i, (_, turn) in enumerate(context) if cut.kept_from is not None and turn.key == cut.kept_from), len(context))
    return [i >= tail or (turn.key != "" and turn.key in cut.kept) for i, (_, turn) in enumerate(context)]


def _rewound(context: list[tuple[int, Turn]], turns: int) -> list[tuple[int, Turn]]:
    """The context without its last user turns and what followed them."""
    asked = [i for i, (_, turn) in enumerate(context) if turn.kind is MessageKind.USER]
    if turns <= 0 or not asked:
        return context
    return context[: asked[-min(turns, len(asked))]]


def _message(number: int, turn: Turn) -> dict[str, Any]:
    """A turn as a message of the contract."""
    return {"i": number, **as_turn(turn)}


def as_turn(turn: Turn) -> dict[str, Any]:
    """A turn as a message without its number, as `winnow.client.boundary` takes it; defaults are left out."""
    value: dict[str, Any] = {"kind": turn.kind.value, "text": turn.text}
    if turn.kind is MessageKind.ENVIRONMENT:
        value |= {"origin": turn.origin.value, "tool": turn.tool, "call_id": turn.call_id, "is_error": turn.is_error}
    return {key: said for key, said in value.items() if said is not None and said is not False}


def _about(cut: Cut) -> dict[str, Any]:
    said = {
        "trigger": cut.trigger.value if cut.trigger else None,
        "tokens_before": cut.tokens_before,
        "boundary_at": cut.at,
        "compressor": cut.compressor,
    }
    return {key: value for key, value in said.items() if value is not None}


def _fit(made: Boundary) -> Boundary | Fault:
    """The boundary, where Winnow would take it."""
    if not made.candidate.strip():
        return Fault(place=made.place, text="the summary is empty or encrypted: there is nothing to judge", mild=True, cut=True)
    if len(made.candidate.encode()) > limits.SUMMARY_BYTES:
        return Fault(place=made.place, text=f"the summary is longer than {limits.SUMMARY_BYTES} bytes", cut=True)
    messages = (*made.history, *made.retained)
    if len(messages) > limits.MAX_MESSAGES or sum(len(m["text"].encode()) for m in messages) > limits.ORIGINAL_BYTES:
        most = limits.ORIGINAL_BYTES // limits.MIB
        return Fault(place=made.place, text=f"more than {limits.MAX_MESSAGES} messages or {most} MiB in one span", cut=True)
    return made
