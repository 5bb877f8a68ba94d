"""pydantic-ai: `judged(summarize, bridge, run=...)` around a history processor that you wrote.

pydantic-ai has no summariser of its own; a history processor that writes one gives back a list in which one new message stands for those
that are gone. That message is judged. It needs nothing of pydantic-ai but its messages.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from winnow.client.building import Turn, action, notice, output, user
from winnow.client.hosts.bridge import Bridge, Foreign, RunOf, Span

#: A history processor: the messages before a request of the model, and those that it shall see.
Processor = Callable[[list[Foreign]], list[Foreign] | Awaitable[list[Foreign]]]

_TEXTS = frozenset({"user-prompt", "text"})


def judged(processor: Processor, bridge: Bridge, *, run: RunOf) -> Callable[[list[Foreign]], Awaitable[list[Foreign]]]:
    """The same processor, whose summaries are judged before the model sees them.

    `processor` takes the messages alone, not the run's context; `run` names the session. A list with no new message, or with a new one
    that is not a single text, passes as it is.
    """

    async def process(messages: list[Foreign]) -> list[Foreign]:
        made = processor(list(messages))
        after = await made if inspect.isawaitable(made) else made
        before = {id(one) for one in messages}
        new = [i for i, one in enumerate(after) if id(one) not in before]
        stays = {id(one) for one in after}
        gone = [one for one in messages if id(one) not in stays]
        if len(new) != 1 or not gone or (candidate := _only_text(after[new[0]])) is None:
            return after
        last = bridge.last_summary(run)
        kept = [one for one in messages if id(one) in stays]
        text = await bridge.judged_async(candidate, lambda: span(gone, kept, last), run=run)
        if text == candidate:
            return after
        return [_with_text(one, text) if i == new[0] else one for i, one in enumerate(after)]

    return process


def span(gone: Sequence[Foreign], kept: Sequence[Foreign], last: str | None = None) -> Span:
    """What the new message stands for. `last` is the summary before it: the message that says just that is no turn of the user."""
    carried = [one for one in gone if last is not None and _only_text(one) == last]
    others = [one for one in gone if not any(one is other for other in carried)]
    history = [turn for one in others for turn in turns(one)]
    return Span(
        history=history,
        retained=[turn for one in kept for turn in turns(one)],
        previous=last if carried else None,
        task=next((str(turn["text"]) for turn in history if turn["kind"] == "user"), ""),
    )


def turns(message: Foreign) -> list[Turn]:
    """A message of pydantic-ai as turns, part by part. Thinking is left out."""
    made: list[Turn] = []
    for part in message.parts:
        match part.part_kind:
            case "user-prompt":
                made.append(user(_words(part.content)))
            case "text":
                made.append(action(_words(part.content)))
            case "tool-call":
                made.append(action(f"[tool call] {part.tool_name}: {_json(part.args)}"))
            case "tool-return":
                made.append(output(_json(part.content), tool=part.tool_name or None, call_id=part.tool_call_id or None))
            case "retry-prompt":  # the framework's words on a call that failed
                made.append(notice(_json(part.content)))
            case "system-prompt":
                made.append(notice(_words(part.content)))
            case _:
                pass
    return [turn for turn in made if turn["text"]]


def _only_text(message: Foreign) -> str | None:
    """The text of a message that is one text and nothing else."""
    parts = [part for part in message.parts if part.part_kind != "thinking"]
    one = parts[0] if len(parts) == 1 and parts[0].part_kind in _TEXTS else None
    return one.content if one is not None and isinstance(one.content, str) else None


def _with_text(message: Foreign, text: str) -> Foreign:
    """The message with another text; the processor may keep its own, so that one is not changed."""
    parts = [replace(part, content=text) if part.part_kind in _TEXTS else part for part in message.parts]
    return replace(message, parts=parts)


def _words(content: Foreign) -> str:
    return content if isinstance(content, str) else "\n".join(one for one in content if isinstance(one, str))


def _json(value: Foreign) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
