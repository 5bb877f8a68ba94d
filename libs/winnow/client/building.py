"""Building a boundary from what a runtime has at hand."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from winnow.client.result import Compaction
from winnow.contracts.envelope import explain, reason_of
from winnow.contracts.errors import Permanent
from winnow.contracts.events import Candidate, Message
from winnow.contracts.vocabulary import MessageKind, Origin

#: A message without its number: `boundary` numbers messages in order.
Turn = Mapping[str, Any]


class InvalidBoundary(Permanent):
    """The boundary cannot be built from these values."""


def action(text: str) -> Turn:
    """What the agent said or called."""
    return {"kind": MessageKind.ACTION, "text": text}


def output(text: str, *, tool: str | None = None, call_id: str | None = None, is_error: bool = False, origin: Origin | None = None) -> Turn:
    """What a tool gave back. `origin` says where it is not plainly an observation: an echo, a subagent, the host."""
    return {
        "kind": MessageKind.ENVIRONMENT,
        "text": text,
        "tool": tool,
        "call_id": call_id,
        "is_error": is_error,
        "origin": origin or Origin.OBSERVATION,
    }


def user(text: str) -> Turn:
    """What the user said."""
    return {"kind": MessageKind.USER, "text": text}


def notice(text: str) -> Turn:
    """The host's own words: reminders, injected context."""
    return {"kind": MessageKind.NOTICE, "text": text}


def _numbered(turns: Iterable[Turn | Message], start: int) -> list[Turn | Message]:
    """Number the turns that have no number, in order; a `Message` keeps its own. Raise `InvalidBoundary`."""
    turns = list(turns)
    if not all(isinstance(turn, Message | Mapping) for turn in turns):  # a text is an iterable too
        raise InvalidBoundary("messages are a list of what action(), output(), user() and notice() make, or of Message")
    return [turn if isinstance(turn, Message) or "i" in turn else {**turn, "i": i} for i, turn in enumerate(turns, start)]


def boundary(  # the common fields by name, the rest as the event names them
    *,
    run: str,
    index: int,
    candidate: str,
    history: Iterable[Turn | Message] = (),
    retained: Iterable[Turn | Message] = (),
    previous: Compaction | str | None = None,
    fleet: str = "default",
    **fields: Any,  # noqa: ANN401  fields of `Candidate`, validated by it
) -> Candidate:
    """Build a boundary; `fields` are further fields of `Candidate`, for example `task`, `mode`, `host`, `first_message`.

    `previous` is the last compaction of the run (its text becomes M, its id the previous boundary) or the text that the agent carried.
    `first_message` numbers the first message of `history` (0 by default), for runtimes that count through the run.
    Raise `InvalidBoundary`; its text names fields and never quotes content.
    """
    start = fields.pop("first_message", 0)
    if not isinstance(start, int):
        raise InvalidBoundary("first_message must be an integer")
    if isinstance(previous, Compaction):
        fields.setdefault("previous_boundary_id", previous.boundary_id)
        previous = previous.summary
    if unknown := sorted(set(fields) - set(Candidate.model_fields)):
        msg = f"a boundary has no field {', '.join(map(repr, unknown[:3]))}"
        raise InvalidBoundary(msg)
    numbered = _numbered(history, start)
    try:
        return Candidate.model_validate(
            {
                "fleet": fleet,
                "run": run,
                "index": index,
                "candidate": candidate,
                "history": numbered,
                "retained": _numbered(retained, start + len(numbered)),
                "previous_summary": previous,
                **fields,
            },
        )
    except ValidationError as exc:
        raise InvalidBoundary(explain(exc), reason=reason_of(exc)) from None
    except UnicodeEncodeError:
        raise InvalidBoundary("a text holds a lone surrogate, which has no UTF-8 bytes") from None
