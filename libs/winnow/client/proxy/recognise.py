"""Which request of which host is a compaction: told by the words with which the host asks for it.

Only hosts that send the conversation as messages can be judged here. Those that write it into one text (Goose, Kimi CLI, Roo Code) give
the judge no output to tell from the agent's own words; their requests pass.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from winnow.client.hosts.bridge import Span
from winnow.client.proxy.styles import Style, asked

#: Headers that name the session: the caller's own, Codex's, Crush's.
_SESSION_HEADERS = ("x-winnow-run", "session_id", "session-id", "x-session-id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """How a host carries its last summary in the conversation: as a user message."""

    mark: str  # what such a message starts with; for Gemini CLI, what it holds
    starts: bool = True
    between: str = ""  # stands between the host's words and the summary; empty where the message is the summary

    def cut(self, text: str) -> str:
        """The summary in such a message, as the host put it there."""
        return text.partition(self.between)[2] if self.between else text


_CARRIED = {
    "codex": Carried(mark="Another language model started to solve this problem and produced a summary", between="\n"),
    "continue": Carried(mark="Previous conversation summary:\n\n", between="\n\n"),
    "gemini-cli": Carried(mark="<state_snapshot>", starts=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """How one host asks for a summary. Its source, commit and date stand in docs/prompts.md."""

    host: str
    where: Literal["request", "system"]
    starts: str


FINGERPRINTS = (
    Fingerprint(host="codex", where="request", starts="You are performing a CONTEXT CHECKPOINT COMPACTION."),
    Fingerprint(host="crush", where="system", starts="You are summarizing a conversation to preserve context for continuing work later."),
    Fingerprint(
        host="continue",
        where="request",
        starts="Create a comprehensive summary of this conversation that captures all essential information needed to continue the work",
    ),
    # Gemini CLI asks twice, and stores the second answer.
    Fingerprint(host="gemini-cli", where="request", starts="Critically evaluate the <state_snapshot> you just generated."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A compaction request that was recognised."""

    host: str
    run: str
    span: Span
    compressor: str | None


def recognised(style: Style, body: Mapping[str, Any], headers: Mapping[str, str]) -> Compaction | None:
    """The compaction that a request asks for; None for every other request."""
    messages = style.messages(body)
    if not messages:
        return None
    request, system = asked(messages[-1]).lstrip(), style.system(body)
    found = next((f for f in FINGERPRINTS if _asks(f, request, system)), None)
    if found is None:
        return None
    turns = [turn for message in messages[:-1] for turn in message]
    if found.host == "gemini-cli":
        turns = turns[:-1]  # the first answer, which the second one replaces
    carried = [turn["kind"] == "user" and _carries(found.host, str(turn["text"])) for turn in turns]
    summaries = [str(turn["text"]) for turn, is_one in zip(turns, carried, strict=True) if is_one]
    turns = [turn for turn, is_one in zip(turns, carried, strict=True) if not is_one]
    previous = _CARRIED[found.host].cut(summaries[-1]) if summaries else None
    task = next((str(turn["text"]) for turn in turns if turn["kind"] == "user"), "")
    model = body.get("model")
    return Compaction(
        host=found.host,
        run=_run(body, headers, task),
        span=Span(history=turns, previous=previous, task=task),
        compressor=model if isinstance(model, str) and model.isprintable() and 0 < len(model) <= 200 else None,  # noqa: PLR2004  a name's most
    )


def with_last(span: Span, last: str | None) -> Span:
    """The span with `last`, the summary handed over last, as the previous one, where a user message says just that: Crush has no mark."""
    told = list(span.history)
    history = [turn for turn in told if turn["kind"] != "user" or str(turn["text"]) != last]
    if span.previous is not None or len(history) == len(told):
        return span
    return replace(span, history=history, previous=last)


def _asks(fingerprint: Fingerprint, request: str, system: str) -> bool:
    """Whether a request has the words; hosts put lines of their own before a system prompt."""
    if fingerprint.where == "request":
        return request.startswith(fingerprint.starts)
    return any(line.lstrip().startswith(fingerprint.starts) for line in system.splitlines())


def _carries(host: str, text: str) -> bool:
    said = _CARRIED.get(host)
    return said is not None and (text.startswith(said.mark) if said.starts else said.mark in text)


def _run(body: Mapping[str, Any], headers: Mapping[str, str], task: str) -> str:
    """The session: what the caller or the host calls it, else a name that stays as long as the first thing that the user asked."""
    named = next((headers[name] for name in _SESSION_HEADERS if headers.get(name)), None)
    key = body.get("prompt_cache_key")
    said = named or (key if isinstance(key, str) else None)
    return said or f"proxy-{hashlib.sha256(task.encode('utf-8', 'replace')).hexdigest()[:16]}"
