"""Google ADK event compaction: `EventsCompactionConfig(summarizer=JudgedSummarizer(LlmEventSummarizer(llm), bridge, run=...), ...)`.

ADK hands a summarizer the events of a window and takes back one event with the summary. Nothing in the events names the session.
"""

import json
from collections.abc import Sequence
from typing import Any

# Installed by the host, never by Winnow: mypy here does not know it.
from google.adk.apps.base_events_summarizer import BaseEventsSummarizer  # type: ignore[import-not-found,import-untyped,unused-ignore]

from winnow.client.building import Turn, action, output, user
from winnow.client.hosts.bridge import Bridge, Foreign, RunOf, Span


class JudgedSummarizer(BaseEventsSummarizer):  # type: ignore[misc]  # its base is unknown without the host
    """A summarizer whose summaries are judged before ADK stores them."""

    def __init__(self, inner: Foreign, bridge: Bridge, *, run: RunOf) -> None:
        """`inner` writes the candidate, for example an `LlmEventSummarizer`; `run` names the session."""
        self._inner = inner
        self._bridge = bridge
        self._run = run

    async def maybe_summarize_events(self, *, events: list[Any]) -> Foreign:
        """What the inner summarizer makes of the events, with the committed text in it."""
        made = await self._inner.maybe_summarize_events(events=events)
        content = _compacted(made)
        said = [
            part for part in (getattr(content, "parts", None) or ()) if getattr(part, "text", None) and not getattr(part, "thought", None)
        ]
        if not said:
            return made
        candidate = "\n".join(part.text for part in said)
        text = await self._bridge.judged_async(candidate, lambda: span(events), run=self._run)
        if text != candidate:
            said[0].text = text
            content.parts = [part for part in content.parts if part is said[0] or part not in said]
        return made


def span(events: Sequence[Any]) -> Span:
    """What a summary of these events replaces; a summary among them is the previous one. Windows overlap: an event may come again."""
    carried = [content for one in events if (content := _compacted(one)) is not None]
    others = [one for one in events if _compacted(one) is None]
    asked = next((turn for one in others for turn in turns(one) if turn["kind"] == "user"), None)
    return Span(
        history=[turn for one in others for turn in turns(one)],
        previous="\n".join(part.text for part in carried[-1].parts if part.text) if carried else None,
        task=asked["text"] if asked else "",
    )


def turns(event: Foreign) -> list[Turn]:
    """An event as turns. Thoughts are the agent's own and are left out; so is what a tool asked of the user's credentials."""
    made: list[Turn] = []
    for part in _parts(getattr(event, "content", None)):
        response, called = getattr(part, "function_response", None), getattr(part, "function_call", None)
        if response is not None:
            said = response.response
            failed = isinstance(said, dict) and "error" in said
            text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str)
            made.append(output(text, tool=response.name or None, call_id=response.id or None, is_error=failed))
        elif called is not None and called.name != "adk_request_credential":
            made.append(action(f"[tool call] {called.name}: {json.dumps(called.args, ensure_ascii=False, default=str)}"))
        elif _is_text(part):
            made.append((user if getattr(event, "author", None) == "user" else action)(part.text))
    return made


def _compacted(event: Foreign) -> Foreign:
    """The content of a compaction event, or None."""
    return getattr(getattr(getattr(event, "actions", None), "compaction", None), "compacted_content", None)


def _parts(content: Foreign) -> Sequence[Foreign]:
    return getattr(content, "parts", None) or ()


def _is_text(part: Foreign) -> bool:
    """Words of the answer, not of the thinking before it."""
    return bool(getattr(part, "text", None)) and not getattr(part, "thought", None)
