"""Which request of which host is a compaction: told by the words with which the host asks for it.

Only hosts that send the conversation as messages can be judged here. Those that write it into one text (Goose, Kimi CLI, Roo Code) give
the judge no output to tell from the agent's own words; their requests pass.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from winnow.client.hosts.bridge import Span
from winnow.client.proxy.styles import Style, asked

#: Where Codex puts a summary when it goes on: a user message that starts so.
_CODEX_SUMMARY = "Another language model started to solve this problem and produced a summary"

#: What Gemini CLI's summaries hold; it puts one, as it is, where the user's first message was.
_GEMINI_SUMMARY = "<state_snapshot>"


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
    request, system = asked(messages[-1]).lstrip(), style.system(body).lstrip()
    found = next((f for f in FINGERPRINTS if (request if f.where == "request" else system).startswith(f.starts)), None)
    if found is None:
        return None
    turns = [turn for message in messages[:-1] for turn in message]
    previous = None
    if found.host == "gemini-cli":
        turns = turns[:-1]  # the first answer, which the second one replaces
        carried = [turn for turn in turns if turn["kind"] == "user" and _GEMINI_SUMMARY in str(turn["text"])]
        turns = [turn for turn in turns if turn not in carried]
        previous = str(carried[-1]["text"]) if carried else None
    elif found.host == "codex":
        carried = [turn for turn in turns if turn["kind"] == "user" and str(turn["text"]).startswith(_CODEX_SUMMARY)]
        turns = [turn for turn in turns if turn not in carried]
        # Prefix, line end, summary: as the host puts them together.
        previous = str(carried[-1]["text"]).partition("\n")[2] if carried else None
    task = next((str(turn["text"]) for turn in turns if turn["kind"] == "user"), "")
    model = body.get("model")
    return Compaction(
        host=found.host,
        run=_run(body, headers, task),
        span=Span(history=turns, previous=previous, task=task),
        compressor=model if isinstance(model, str) and model.isprintable() and 0 < len(model) <= 200 else None,  # noqa: PLR2004  a name's most
    )


def _run(body: Mapping[str, Any], headers: Mapping[str, str], task: str) -> str:
    """The session: what the caller or the host calls it, else a name that stays as long as the first thing that the user asked."""
    key = body.get("prompt_cache_key")
    said = headers.get("x-winnow-run") or headers.get("session_id") or headers.get("session-id") or (key if isinstance(key, str) else None)
    return said or f"proxy-{hashlib.sha256(task.encode('utf-8', 'replace')).hexdigest()[:16]}"
