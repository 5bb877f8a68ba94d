"""LangChain and Deep Agents: `judged(SummarizationMiddleware(...), bridge)`.

The middleware's own `_create_summary` and `_acreate_summary` write the candidate; what they return is what replaces the history. They are
replaced on the instance, so that one wrap serves both libraries and every subclass. The split into what is summarised and what stays is
seen on the way: the summariser is shown the last 4,000 tokens of the span alone, the judge all of it.
"""

import importlib
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from winnow.client.building import Turn, action, notice, output, user
from winnow.client.hosts.bridge import Bridge, Foreign, RunOf, Span
from winnow.contracts.vocabulary import Origin

M = TypeVar("M")

#: Before a summary in the message that carries it; Deep Agents puts it between tags instead, below words of its own.
_PREFIX = "Here is a summary of the conversation to date:\n\n"
_OPENING, _CLOSING = "<summary>\n", "\n</summary>"
#: Marks the message that carries a summary.
_SOURCE = "summarization"
#: Tools of Deep Agents whose output is another model's text.
_SUBAGENTS = frozenset({"task"})

# Messages that stay, between the split and the summary of one compaction: both run in one task, or in one thread.
_kept: ContextVar[tuple[Any, ...]] = ContextVar("winnow_langchain_kept", default=())


def judged(middleware: M, bridge: Bridge, *, run: RunOf | None = None) -> M:
    """The same middleware, whose summaries are judged before they replace the history.

    `run` left out is the `thread_id` of the graph's configuration, and `langchain` where there is none. Raise `TypeError` for an object
    without LangChain's seam.
    """
    made: Foreign = middleware
    if not all(callable(getattr(made, name, None)) for name in ("_create_summary", "_acreate_summary", "_partition_messages")):
        msg = "judged() wraps a SummarizationMiddleware of langchain >= 1.0 or deepagents; this object has not its methods"
        raise TypeError(msg)
    create, acreate, partition = made._create_summary, made._acreate_summary, made._partition_messages  # noqa: SLF001  the seam
    which = run if run is not None else thread_id
    compressor = _model(made)

    def split(messages: list[Any], cutoff: int) -> tuple[list[Any], list[Any]]:
        gone, stays = partition(messages, cutoff)
        _kept.set(tuple(stays))
        return gone, stays

    def create_summary(messages: list[Any]) -> str:
        return bridge.judged(create(messages), lambda: span(messages, _kept.get()), run=which, compressor=compressor)

    async def acreate_summary(messages: list[Any]) -> str:
        return await bridge.judged_async(await acreate(messages), lambda: span(messages, _kept.get()), run=which, compressor=compressor)

    made._create_summary, made._acreate_summary, made._partition_messages = create_summary, acreate_summary, split  # noqa: SLF001  the seam
    return middleware


def span(messages: Sequence[Any], stays: Sequence[Any] = ()) -> Span:
    """What a summary of `messages` replaces; a summary among them is the previous one."""
    carried = [one for one in messages if _is_summary(one)]
    others = [one for one in messages if not _is_summary(one)]
    asked = next((_text(one) for one in others if _type(one) == "human"), "")
    return Span(
        history=[turn for one in others for turn in turns(one)],
        retained=[turn for one in stays for turn in turns(one)],
        previous=_summary(_text(carried[-1])) if carried else None,
        task=asked,
    )


def turns(message: Foreign) -> list[Turn]:
    """A LangChain message as turns."""
    said = _text(message)
    match _type(message):
        case "human":
            return [user(said)]
        case "ai":
            calls = [f"[tool call] {call.get('name')}: {call.get('args')}" for call in getattr(message, "tool_calls", ())]
            return [action("\n".join(part for part in (said, *calls) if part))]
        case "tool":
            tool = getattr(message, "name", None) or None
            return [
                output(
                    said,
                    tool=tool,
                    call_id=getattr(message, "tool_call_id", None) or None,
                    is_error=getattr(message, "status", None) == "error",
                    origin=Origin.SUBAGENT if tool in _SUBAGENTS else None,
                )
            ]
        case _:
            return [notice(said)]


def thread_id() -> str:
    """The `thread_id` of the graph that runs now; `langchain` outside a graph or without one."""
    try:
        config = importlib.import_module("langgraph.config").get_config()
    except (ImportError, RuntimeError):  # no LangGraph; not inside a graph
        return "langchain"
    return str(config.get("configurable", {}).get("thread_id") or "langchain")


def _summary(said: str) -> str:
    """The summary in the message that carries it."""
    if said.startswith(_PREFIX):
        return said[len(_PREFIX) :]
    start, end = said.find(_OPENING), said.rfind(_CLOSING)
    return said[start + len(_OPENING) : end] if 0 <= start < end else said


def _is_summary(message: Foreign) -> bool:
    return bool((getattr(message, "additional_kwargs", None) or {}).get("lc_source") == _SOURCE)


def _type(message: Foreign) -> str:
    return str(getattr(message, "type", ""))


def _text(message: Foreign) -> str:
    content = getattr(message, "content", "")
    if isinstance(content, str):
        return content
    parts = [one if isinstance(one, str) else one.get("text") if isinstance(one, dict) else None for one in content]
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _model(middleware: Foreign) -> str | None:
    """The compressor's name, where the model tells one."""
    model = getattr(middleware, "model", None)
    said = next((one for name in ("model_name", "model", "model_id") if isinstance(one := getattr(model, name, None), str)), None)
    return said[:200] if said and said.isprintable() else None
