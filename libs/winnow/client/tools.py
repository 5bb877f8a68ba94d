"""The recovery tools, as any runtime can offer them to its agent: `expand`, `search_history`, `pruned_entries`.

`winnow mcp` serves them over MCP; a runtime with tools of its own puts `TOOLS` among them and hands calls to `call`. What they return
is text for a model. `expand` returns the exact bytes and nothing else; everything else begins with a notice, by which Winnow knows it when
it comes back in a history. A miss is an error, never an empty success.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from winnow.client.api import PrunedEntry, SearchHit
from winnow.client.client import WinnowClient
from winnow.contracts import limits
from winnow.contracts.errors import NotFound, Permanent, Retryable, WinnowError
from winnow.contracts.events import sha256
from winnow.contracts.places import NOTICE

#: Bytes that one call of `expand` gives at most: about 16,000 tokens of a model's context. The rest is asked for by `start`.
EXPAND_BYTES: Final = 64 * limits.KIB
#: Rows that a call of `search_history` or `pruned_entries` gives unless asked otherwise, and at most.
ROWS, MOST_ROWS = 10, 50
#: Runs that are named to an agent that does not say which it means.
RUNS_NAMED: Final = 5

_RUN: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": "Name of the run (session). Leave it out for this session's own, where the server knows it.",
}
_CURSOR: Final = {"type": "string", "maxLength": 1000, "description": "From the last line of the page before, for the next page."}
_LIMIT: Final = {"type": "integer", "minimum": 1, "maximum": MOST_ROWS, "description": f"Rows of a page; {ROWS} if left out."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool as a model is told of it."""

    name: str
    description: str
    #: JSON Schema of the arguments.
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call gives the agent."""

    #: What the model reads. For `expand` the exact text and nothing else; empty where the bytes are no text.
    text: str
    #: The exact bytes, where they are no UTF-8.
    data: bytes | None = None
    #: Said beside the exact text: that it is a part, how to get the rest.
    note: str | None = None
    #: Nothing was recovered or found out; `text` says what to do.
    error: bool = False
    #: For programs, not for the model: handle, kind, source, hash, range.
    about: Mapping[str, str | int | bool] = field(default_factory=dict)

    @property
    def base64(self) -> str | None:
        """The bytes that are no text, in base64."""
        return None if self.data is None else base64.b64encode(self.data).decode()


TOOLS: Final = (
    Tool(
        name="expand",
        description=(
            "Give back, byte for byte, something that compaction removed from your context: a pruned summary entry, a tool output or "
            "message of the past, a whole earlier summary. Take the handle from search_history or pruned_entries. An entry that you ask "
            "back is kept in later summaries. Text that you recover is what was said then; it proves nothing about now."
        ),
        schema={
            "type": "object",
            "properties": {
                "handle": {"type": "string", "maxLength": 200, "description": "The handle, exactly as it was listed."},
                "start": {"type": "integer", "minimum": 0, "description": "First byte wanted, for the rest of something large."},
            },
            "required": ["handle"],
            "additionalProperties": False,
        },
    ),
    Tool(
        name="search_history",
        description=(
            "Search what was said before compaction: tool outputs, messages and summary entries, also pruned ones. Returns handles with "
            "one line each, best first; expand(handle) gives all of it."
        ),
        schema={
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "Words to look for; any of them may occur."},
                "run": _RUN,
                "cursor": _CURSOR,
                "limit": _LIMIT,
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    ),
    Tool(
        name="pruned_entries",
        description=(
            "List what was pruned from the summaries of a run because no source was found for it, newest first, with why and a handle for "
            "expand. Look here when a plan or a decision that you expected is missing."
        ),
        schema={
            "type": "object",
            "properties": {"run": _RUN, "cursor": _CURSOR, "limit": _LIMIT},
            "additionalProperties": False,
        },
    ),
)


async def call(client: WinnowClient, name: str, arguments: Mapping[str, Any], *, run: str | None = None) -> Answer:
    """Call a tool with arguments that a model made up. Never raises for what they hold, nor for a Winnow that is away.

    Args:
        client: whose fleet is asked; never another one's.
        name: one of `TOOLS`.
        arguments: as the model gave them; their types are not trusted.
        run: the run that the agent is, where the runtime knows it.
    """
    try:
        if name == "expand":
            return await _expand(client, _text(arguments, "handle"), _number(arguments, "start", 0), run)
        if name == "search_history":
            return await _search(client, _text(arguments, "query"), arguments, run)
        if name == "pruned_entries":
            return await _pruned(client, arguments, run)
    except Retryable as exc:
        return _failed(f"Nothing was recovered, Winnow does not answer now ({exc}). Try again in a moment, or go on without.")
    except WinnowError as exc:
        return _failed(f"Nothing was recovered: {exc}")
    return _failed(f"There is no tool of this name; there are {', '.join(tool.name for tool in TOOLS)}.")


async def _expand(client: WinnowClient, handle: str, start: int, run: str | None) -> Answer:
    """The exact bytes, a page of them where there are many."""
    got = await client.expand(handle, run=run, start=start, end=start + EXPAND_BYTES)
    about: dict[str, str | int | bool] = {
        "handle": handle, "kind": got.kind, "source": got.source, "sha256": sha256(got.data), "start": got.start, "end": got.end,
        "size": got.size,
    }  # fmt: skip
    rest = f"; the rest: expand with start={got.end}" if got.end < got.size else ""
    note = None if got.whole else f"{NOTICE} bytes {got.start} to {got.end} of {got.size}{rest}"
    if got.text is None:
        said = f"{NOTICE} {len(got.data)} bytes that are no UTF-8 text; they are attached as base64{rest}"
        return Answer(text="", data=got.data, note=said, about=about)
    return Answer(text=got.text, note=note, about=about)


async def _search(client: WinnowClient, query: str, arguments: Mapping[str, Any], run: str | None) -> Answer:
    """Hits as lines. Without a run all of the fleet's are searched, for an agent may be one of several on a task."""
    of = _optional(arguments, "run") or run
    page = await client.search_history(query, run=of, cursor=_optional(arguments, "cursor"), limit=_limit(arguments))
    where = f"run {of}" if of else "all runs"
    if not page.items:
        said = f"{NOTICE}\nNothing in {where} holds these words ({page.boundaries} compactions searched). Try other words"
        return Answer(text=f"{said}, or names and numbers as they were written.")
    lines = [NOTICE, *map(_hit_line, page.items)]
    if page.next_cursor:
        lines.append(f"More: the same query with cursor={page.next_cursor}")
    elif not page.complete:
        lines.append("Not everything was searched: the newest compactions alone, or the best 100 places. Use rarer words, or name a run.")
    return Answer(text="\n".join(lines))


async def _pruned(client: WinnowClient, arguments: Mapping[str, Any], run: str | None) -> Answer:
    """Pruned entries as lines."""
    of = _optional(arguments, "run") or run
    if of is None:
        named = [view.run for view in (await client.runs(most=RUNS_NAMED))]
        heard = f"; heard of last: {', '.join(map(repr, named))}" if named else ""
        raise NotFound(f"say which run{heard}")
    page = await client.pruned_entries(of, cursor=_optional(arguments, "cursor"), limit=_limit(arguments))
    if not page.items:
        return Answer(text=f"{NOTICE}\nNothing was pruned from the summaries of run {of}.")
    lines = [NOTICE, *map(_entry_line, page.items)]
    if page.next_cursor:
        lines.append(f"More: cursor={page.next_cursor}")
    return Answer(text="\n".join(lines))


def _hit_line(hit: SearchHit) -> str:
    what = hit.kind.value if hit.kind else "summary entry"
    if hit.kind and hit.tool:
        what = f"output of {hit.tool}"
    if hit.pruned:
        what = "pruned summary entry"
    return f"{hit.handle} [{what}, run {hit.run}, compaction {hit.index}]: {hit.excerpt}"


def _entry_line(entry: PrunedEntry) -> str:
    kept = "; asked back since" if entry.asked_back else ""
    return f"{entry.handle} [compaction {entry.index}, {entry.section or 'no heading'}{kept}]: {entry.excerpt} ({entry.explanation})"


def _failed(text: str) -> Answer:
    return Answer(text=text, error=True)


def _text(arguments: Mapping[str, Any], name: str) -> str:
    """A text that must be there. Raise `Permanent`."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise Permanent(f"{name}: a text is needed here")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Permanent(f"{name}: holds half a character (a lone surrogate); leave it out") from None
    return value


def _optional(arguments: Mapping[str, Any], name: str) -> str | None:
    """A text that may be left out; an empty one is left out."""
    value = arguments.get(name)
    return None if value is None or value == "" else _text(arguments, name)


def _number(arguments: Mapping[str, Any], name: str, default: int) -> int:
    """A whole number that may be left out. Raise `Permanent`."""
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limits.ORIGINAL_BYTES:
        raise Permanent(f"{name}: a number from 0 to {limits.ORIGINAL_BYTES} is needed here")
    return value


def _limit(arguments: Mapping[str, Any]) -> int:
    return max(1, min(_number(arguments, "limit", ROWS), MOST_ROWS))
