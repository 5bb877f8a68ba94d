"""Claude Code: the transcript of a session, `~/.claude/projects/<folder>/<session>.jsonl`.

Rows form a tree by `parentUuid`; a rewind leaves a dead branch. Parallel tool calls branch too: each call is a row of its own, each result
hangs on its call, and only one of them is an ancestor of what follows. So the rows of the session are the ancestors of the last row, the
other rows of the same model message, and the results of their calls. A compaction is a system row `compact_boundary`, without a parent but
with a `logicalParentUuid`, then a user row with `isCompactSummary`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from winnow.client.readers import rows, values
from winnow.client.readers.rows import Fault, Json, Row
from winnow.client.readers.session import Boundary, Cut, Item, Turn, boundaries
from winnow.contracts.vocabulary import MessageKind, Origin, Trigger

HOST = "claude-code"
#: Tools whose output is another model's text.
_SUBAGENTS = frozenset({"Task", "Agent"})
#: Starts of user rows that the host wrote: commands, their output, the end of a background task.
_NOTICES = ("<command-name>", "<command-message>", "<local-command-", "<task-notification>", "Caveat:", "[Request interrupted")
_REMINDER = ("<system-reminder>", "</system-reminder>")
_TRIGGERS = {"auto": Trigger.THRESHOLD, "manual": Trigger.MANUAL}


def read(path: Path) -> Iterator[Boundary | Fault]:
    """The boundaries of one transcript. Raise `Unreadable`."""
    found: list[Row] = []
    for row in rows.lines(path):
        if isinstance(row, Fault):
            yield row
        elif row.value.get("isSidechain") is not True:
            found.append(row)
    run = next((said for row in found if (said := values.name(row.value.get("sessionId")))), None) or path.stem[: values.NAME_CHARS]
    yield from boundaries(_items(_living(found)), host=HOST, run=run)


def _living(found: list[Row]) -> list[Row]:
    """The rows that belong to the session as it ended, in file order."""
    at = {key: i for i, row in enumerate(found) if (key := _key(row))}
    live: set[int] = set()
    i = max((i for i, row in enumerate(found) if _key(row)), default=-1)
    while i >= 0 and i not in live:
        live.add(i)
        parent = found[i].value.get("parentUuid") or found[i].value.get("logicalParentUuid")
        # A parent that is not in the file was lost with a crash or a trim: go on with the row before.
        i = at.get(parent, i - 1) if isinstance(parent, str) else (i - 1 if _compacts(found[i]) else -1)
    answers = {said for i in live if (said := _answer(found[i]))}
    live |= {i for i, row in enumerate(found) if _answer(row) in answers}
    calls = {call for i in live for call, _ in _calls(found[i])}
    live |= {i for i, row in enumerate(found) if calls.intersection(_results(row))}
    return [found[i] for i in sorted(live)]


def _items(live: list[Row]) -> Iterator[Item]:
    """Turns and compactions of the living rows."""
    tools: dict[str, str] = {}
    about: dict[str, Any] = {}
    for row in live:
        value = row.value
        if _compacts(row):
            about = dict(values.mapping(value.get("compactMetadata")))
        elif value.get("isCompactSummary") is True:
            yield _cut(row, about)
            about = {}
        elif value.get("type") == "assistant":
            tools |= {call: tool for call, tool in _calls(row) if tool}
            yield Turn(kind=MessageKind.ACTION, text=_said(row), key=_key(row))
        elif value.get("type") == "user":
            yield from _user(row, tools)


def _cut(row: Row, about: dict[str, Any]) -> Cut:
    kept = values.listing(values.mapping(about.get("preservedMessages")).get("uuids"))
    return Cut(
        place=row.place,
        summary=values.blocks(_content(row), "text"),
        kept={one for one in kept if isinstance(one, str)},
        trigger=_TRIGGERS.get(values.text(about.get("trigger"))),
        tokens_before=values.count(about.get("preTokens")),
        at=values.moment(row.value.get("timestamp")),
    )


def _user(row: Row, tools: dict[str, str]) -> Iterator[Item]:
    """What a user row holds: results of tools, the user's words, or the host's."""
    content, key = _content(row), _key(row)
    for block in values.listing(content):
        if values.mapping(block).get("type") == "tool_result":
            call = values.name(block.get("tool_use_id"))
            tool = values.name(tools.get(call or ""))
            yield Turn(
                kind=MessageKind.ENVIRONMENT,
                text=values.without_blocks(values.blocks(block.get("content"), "text"), *_REMINDER),
                key=key,
                tool=tool,
                call_id=call,
                is_error=block.get("is_error") is True,
                origin=Origin.SUBAGENT if tool in _SUBAGENTS else Origin.OBSERVATION,
            )
    said = values.without_blocks(values.blocks(content, "text"), *_REMINDER)
    if said.lstrip().startswith(("<bash-stdout>", "<bash-stderr>")):  # the user's own `!` command
        yield Turn(kind=MessageKind.ENVIRONMENT, text=said, key=key, tool="bash")
    elif row.value.get("isMeta") is True or said.lstrip().startswith(_NOTICES):
        yield Turn(kind=MessageKind.NOTICE, text=said, key=key)
    else:
        yield Turn(kind=MessageKind.USER, text=said, key=key)


def _said(row: Row) -> str:
    """What the agent said and called. Its thinking is not recorded in plain words by all versions, and is no source in any."""
    parts = [values.blocks(_content(row), "text")]
    parts += [values.call(b.get("name"), b.get("input")) for b in _blocks(row) if b.get("type") == "tool_use"]
    return "\n".join(part for part in parts if part)


def _calls(row: Row) -> list[tuple[str, str]]:
    """Id and tool of each call in a row."""
    return [(values.text(b.get("id")), values.text(b.get("name"))) for b in _blocks(row) if b.get("type") == "tool_use"]


def _results(row: Row) -> list[str]:
    """Ids of the calls that a row answers."""
    return [values.text(b.get("tool_use_id")) for b in _blocks(row) if b.get("type") == "tool_result"]


def _blocks(row: Row) -> list[dict[str, Any]]:
    return [block for block in values.listing(_content(row)) if isinstance(block, dict)]


def _answer(row: Row) -> str:
    """The id of the model message that an assistant row is part of."""
    return values.text(values.mapping(row.value.get("message")).get("id")) if row.value.get("type") == "assistant" else ""


def _content(row: Row) -> Json:
    return values.mapping(row.value.get("message")).get("content")


def _compacts(row: Row) -> bool:
    return row.value.get("type") == "system" and row.value.get("subtype") == "compact_boundary"


def _key(row: Row) -> str:
    return values.text(row.value.get("uuid"))
