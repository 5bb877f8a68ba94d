"""pi and OpenClaw: a session file, one entry a line, `~/.pi/agent/sessions/--<folder>--/<time>_<id>.jsonl`.

OpenClaw wrote the same form to `~/.openclaw/agents/<agent>/sessions/<id>.jsonl` before it moved transcripts into SQLite, and still writes
it when it archives a session. Entries form a tree by `parentId` (version 1: a line after line); the session is the way from the last entry
to the root. A compaction entry names the first entry that stays.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from winnow.client.readers import rows, values
from winnow.client.readers.rows import Fault, Json, Row
from winnow.client.readers.session import Boundary, Cut, Item, Turn, boundaries
from winnow.contracts.vocabulary import MessageKind, Origin

#: Tools whose output is another model's text.
_SUBAGENTS = frozenset({"sessions_spawn", "subagent", "task"})
#: Entries that the model sees.
_TURNS = frozenset({"message", "custom_message", "branch_summary"})


def read(path: Path, *, host: str) -> Iterator[Boundary | Fault]:
    """The boundaries of one session. Raise `Unreadable`."""
    run = path.stem[: values.NAME_CHARS]
    entries: list[Row] = []
    number = 0  # of the entry in the file, the session's own included: version 1 names the first entry that stays by it
    for row in rows.lines(path):
        if isinstance(row, Fault):
            yield row
            continue
        if row.value.get("type") == "session":
            run = values.name(row.value.get("id")) or run
        else:
            entries.append(row if "id" in row.value else Row(place=row.place, value={**row.value, "id": _numbered(number)}))
        number += 1
    yield from boundaries(_items(_way(entries)), host=host, run=run)


#: OpenClaw's sessions have pi's form, under OpenClaw's own profile.
read_openclaw = partial(read, host="openclaw")
read_pi = partial(read, host="pi")


def _way(entries: list[Row]) -> list[Row]:
    """The entries from the root to the last one."""
    at = {key: i for i, row in enumerate(entries) if (key := values.text(row.value.get("id")))}
    way: set[int] = set()
    i = len(entries) - 1
    while i >= 0 and i not in way:
        way.add(i)
        parent = entries[i].value.get("parentId")
        # No parent is a root; version 1 has no parents at all, and a lost parent is the entry before.
        i = at.get(parent, i - 1) if isinstance(parent, str) else (-1 if "parentId" in entries[i].value else i - 1)
    return [entries[i] for i in sorted(way)]


def _items(way: list[Row]) -> Iterator[Item]:
    following = _following(way)
    for row in way:
        value, key = row.value, values.text(row.value.get("id"))
        match value.get("type"):
            case "message":
                yield _turn(values.mapping(value.get("message")), key)
            case "custom_message":
                yield Turn(kind=MessageKind.NOTICE, text=values.blocks(value.get("content"), "text"), key=key)
            case "branch_summary":
                yield Turn(kind=MessageKind.NOTICE, text=values.text(value.get("summary")), key=key)
            case "compaction":
                yield Cut(
                    place=row.place,
                    summary=values.text(value.get("summary")),
                    kept_from=following.get(values.text(value.get("firstKeptEntryId", _numbered(value.get("firstKeptEntryIndex"))))),
                    tokens_before=values.count(value.get("tokensBefore")),
                    at=values.moment(value.get("timestamp")),
                )


def _numbered(number: Json) -> str:
    """The key of an entry of version 1, which has none of its own."""
    return f"#{number}"


def _following(way: list[Row]) -> dict[str, str]:
    """For each entry the first turn from it on: the entry that stays first may be none (a label, a change of model)."""
    made: dict[str, str] = {}
    turn: str | None = None
    for row in reversed(way):
        key = values.text(row.value.get("id"))
        if values.text(row.value.get("type")) in _TURNS:
            turn = key
        if turn is not None:
            made[key] = turn
    return made


def _turn(message: Json, key: str) -> Turn:
    match message.get("role"):
        case "toolResult":
            tool = values.name(message.get("toolName"))
            return Turn(
                kind=MessageKind.ENVIRONMENT,
                text=values.blocks(message.get("content"), "text"),
                key=key,
                tool=tool,
                call_id=values.name(message.get("toolCallId")),
                # An accepted spawn is flagged as an error by OpenClaw although it is a success.
                is_error=message.get("isError") is True and tool not in _SUBAGENTS,
                origin=Origin.SUBAGENT if tool in _SUBAGENTS else Origin.OBSERVATION,
            )
        case "bashExecution":
            said = f"$ {values.text(message.get('command'))}\n{values.text(message.get('output'))}"
            failed = message.get("exitCode") not in (None, 0)
            return Turn(kind=MessageKind.ENVIRONMENT, text=said, key=key, tool="bash", is_error=failed)
        case "user":
            return Turn(kind=MessageKind.USER, text=values.blocks(message.get("content"), "text"), key=key)
        case "assistant":
            content = message.get("content")
            calls = [values.mapping(b) for b in values.listing(content) if values.mapping(b).get("type") == "toolCall"]
            parts = [values.blocks(content, "text"), *(values.call(b.get("name"), b.get("arguments")) for b in calls)]
            return Turn(kind=MessageKind.ACTION, text="\n".join(part for part in parts if part), key=key)
        case _:
            return Turn(kind=MessageKind.NOTICE, text=values.blocks(message.get("content"), "text"), key=key)
