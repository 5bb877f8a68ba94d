"""Microsoft Agent Framework, Semantic Kernel's successor: `JudgedStrategy(SummarizationStrategy(...), bridge, run=...)`.

A compaction strategy changes the list of messages in place: it puts a summary in and excludes what the summary stands for. The wrap lets
the strategy do so, then judges the new message and writes the committed text into it. It is itself a strategy, so that it can be composed.
"""

from collections.abc import Awaitable, Callable, MutableSequence, Sequence
from typing import Any

from winnow.client.building import Turn, action, notice, output, user
from winnow.client.hosts.bridge import Bridge, Foreign, RunOf, Span

#: What the framework calls: true where the messages were changed.
Strategy = Callable[[list[Any]], Awaitable[bool]]

#: Marks of the framework in a message's properties.
_GROUP, _SUMMARY_OF, _EXCLUDED = "_group", ("_summary_of_message_ids", "_summary_of_group_ids"), "_excluded"


class JudgedStrategy:
    """A compaction strategy whose summaries are judged. Needs nothing of the framework but its messages."""

    def __init__(self, inner: Strategy, bridge: Bridge, *, run: RunOf) -> None:
        """`inner` summarises, for example a `SummarizationStrategy`; `run` names the session, which a strategy is not told."""
        self._inner = inner
        self._bridge = bridge
        self._run = run

    def __repr__(self) -> str:
        """The strategy inside."""
        return f"<JudgedStrategy({self._inner!r})>"

    async def __call__(self, messages: list[Any]) -> bool:
        """Let the strategy compact, then judge the summaries that it put in."""
        before = {id(one) for one in messages}
        visible = {id(one) for one in messages if not excluded(one)}
        changed = await self._inner(messages)
        for made in [one for one in messages if id(one) not in before and is_summary(one)]:
            gone = [one for one in messages if id(one) in visible and excluded(one)]
            stays = [one for one in messages if id(one) in visible and not excluded(one)]
            candidate = _text(made)
            text = await self._bridge.judged_async(candidate, lambda g=gone, s=stays: span(g, s), run=self._run)  # type: ignore[misc]  # bound now
            if text != candidate:
                write(made, text)
        return changed


def span(gone: Sequence[Any], stays: Sequence[Any]) -> Span:
    """What the summary of the messages that are `gone` replaces; a summary among them is the previous one."""
    carried = [one for one in gone if is_summary(one)]
    return Span(
        history=[turn for one in gone if not is_summary(one) for turn in turns(one)],
        retained=[turn for one in stays for turn in turns(one)],
        previous=_text(carried[-1]) if carried else None,
        task=next((_text(one) for one in (*gone, *stays) if _role(one) == "user"), ""),
    )


def turns(message: Foreign) -> list[Turn]:
    """A message of the framework as turns: its calls are actions, its results outputs, the rest is who speaks."""
    said, made = _text(message), []
    calls = [c for c in _contents(message) if getattr(c, "type", "") == "function_call"]
    results = [c for c in _contents(message) if getattr(c, "type", "") == "function_result"]
    for one in results:
        failed = getattr(one, "exception", None) is not None
        made.append(output(str(one.exception if failed else one.result), call_id=getattr(one, "call_id", None) or None, is_error=failed))
    words = "\n".join(part for part in (said, *(f"[tool call] {c.name}: {c.arguments}" for c in calls)) if part)
    if words:
        speak = {"user": user, "assistant": action}.get(_role(message), notice)
        made.append(speak(words))
    return made


def is_summary(message: Foreign) -> bool:
    """Whether a strategy wrote this message in the place of others."""
    marks = _properties(message).get(_GROUP)
    return isinstance(marks, dict) and any(name in marks for name in _SUMMARY_OF)


def excluded(message: Foreign) -> bool:
    """Whether the model no longer sees this message."""
    return bool(_properties(message).get(_EXCLUDED))


def write(message: Foreign, text: str) -> None:
    """Put the committed text in the place of the candidate: the first text content takes it, others are taken out."""
    contents: MutableSequence[Any] = message.contents
    texts = [one for one in contents if getattr(one, "type", "") == "text"]
    texts[0].text = text
    message.contents = [one for one in contents if one is texts[0] or one not in texts]


def _properties(message: Foreign) -> dict[str, Any]:
    return getattr(message, "additional_properties", None) or {}


def _contents(message: Foreign) -> Sequence[Any]:
    return getattr(message, "contents", None) or ()


def _role(message: Foreign) -> str:
    return str(getattr(message, "role", ""))


def _text(message: Foreign) -> str:
    return str(getattr(message, "text", "") or "")
