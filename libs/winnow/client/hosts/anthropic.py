"""The Anthropic Messages API with server-side compaction: `JudgedMessages(client, bridge, run=...).create(model=..., messages=...)`.

With `pause_after_compaction` the API stops after it has written a compaction block (stop reason `compaction`). The block's text is judged
and, where it is plain text that the API takes back from its caller, replaced by the committed text; then the same request goes on with the
block in front. A signed or encrypted block cannot be edited: it is passed on as it is, and the compaction is reported as `bypassed`.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from winnow.client.building import Turn, action, output, user
from winnow.client.hosts.bridge import Bridge, Foreign, RunOf, Span
from winnow.contracts.errors import Permanent

#: The beta that has `compact_20260112` and plain blocks; that of 2026-09-04 signs them.
BETA = "compact-2026-01-12"
#: Compactions in a row within one call. Each one makes the context shorter; more than a few in a row make no progress.
MOST = 4
_EDIT = "compact_20260112"
_STOP = "compaction"


class NoProgress(Permanent):
    """The API compacted again and again within one call; raise the trigger, or shorten what a single turn holds."""


class JudgedMessages:
    """`create` of the asynchronous Anthropic client's beta messages, with every compaction judged on the way."""

    def __init__(
        self, client: Foreign, bridge: Bridge, *, run: RunOf, trigger_tokens: int | None = None, instructions: str | None = None
    ) -> None:
        """`client` is an `anthropic.AsyncAnthropic`. `trigger_tokens` and `instructions` are those of the compaction edit."""
        self._messages = client.beta.messages
        self._bridge = bridge
        self._run = run
        self._edit: dict[str, Any] = {"type": _EDIT, "pause_after_compaction": True}
        if trigger_tokens is not None:
            self._edit["trigger"] = {"type": "input_tokens", "value": trigger_tokens}
        if instructions is not None:
            self._edit["instructions"] = instructions

    async def create(self, *, messages: Iterable[Any], keep: int = 0, **request: Foreign) -> tuple[Any, list[Any]]:
        """The answer, and the messages to go on with: after a compaction the block and the last `keep` messages, else those given.

        `request` is what `client.beta.messages.create` takes, without `stream`. Append the answer's content to the messages as always.
        Raise what the client raises, and `NoProgress`.
        """
        context = list(messages)
        edits = [*request.pop("context_management", {}).get("edits", ()), self._edit]
        betas = [*request.pop("betas", ()), BETA]
        for _ in range(MOST):
            answer = await self._messages.create(messages=context, betas=betas, context_management={"edits": edits}, **request)
            if answer.stop_reason != _STOP:
                return answer, context
            stays = context[len(context) - keep :] if keep else []
            content = [await self._judged(block, context, stays, request.get("model")) for block in answer.content]
            context = [{"role": "assistant", "content": content}, *stays]
        raise NoProgress

    async def _judged(self, block: Foreign, context: Sequence[Any], stays: Sequence[Any], model: Foreign) -> dict[str, Any]:
        """A block of the answer as the next request takes it; a compaction block with the committed text."""
        value: dict[str, Any] = block.model_dump(mode="json", exclude_none=True) if hasattr(block, "model_dump") else dict(block)
        candidate = value.get("content")
        if value.get("type") != _STOP or not isinstance(candidate, str):
            return value
        if value.get("signature") or value.get("encrypted_content"):
            self._bridge.bypassed(self._run, "signed_block")
            return value
        gone = context[: len(context) - len(stays)]
        said = await self._bridge.judged_async(
            candidate, lambda: span(gone, stays), run=self._run, compressor=model if isinstance(model, str) else None
        )
        if not said.strip():  # the API refuses an empty block: rather the candidate than a request that fails
            self._bridge.bypassed(self._run, "empty_summary")
            return value
        return value | {"content": said}


def span(gone: Sequence[Any], stays: Sequence[Any]) -> Span:
    """What the block replaces; a compaction block among the messages is the previous summary."""
    tools: dict[str, str] = {}
    history = [turn for one in gone for turn in turns(one, tools)]
    carried = [b["content"] for one in gone for b in _blocks(one) if b.get("type") == _STOP and isinstance(b.get("content"), str)]
    task = next((turn["text"] for turn in history if turn["kind"] == "user"), "")
    retained = [turn for one in stays for turn in turns(one, tools)]
    return Span(history=history, retained=retained, previous=carried[-1] if carried else None, task=task)


def turns(message: Foreign, tools: dict[str, str]) -> list[Turn]:
    """A message of the API as turns; `tools` remembers which tool a call was of."""
    made: list[Turn] = []
    words: list[str] = []
    speak = user if _get(message, "role") == "user" else action
    for block in _blocks(message):
        match block.get("type"):
            case "text":
                words.append(str(block.get("text", "")))
            case "tool_use":
                tools[str(block.get("id"))] = str(block.get("name"))
                words.append(f"[tool call] {block.get('name')}: {json.dumps(block.get('input'), ensure_ascii=False, default=str)}")
            case "tool_result":
                call = str(block.get("tool_use_id"))
                inner = block.get("content")
                said = inner if isinstance(inner, str) else "\n".join(str(_get(one, "text") or "") for one in inner or ())
                made.append(output(said, tool=tools.get(call), call_id=call, is_error=block.get("is_error") is True))
    return [*made, *([speak("\n".join(words))] if any(words) else [])]


def _blocks(message: Foreign) -> list[dict[str, Any]]:
    content = _get(message, "content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [one if isinstance(one, dict) else one.model_dump(mode="json", exclude_none=True) for one in content or ()]


def _get(value: Foreign, name: str) -> Foreign:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)
