"""OpenCode: what `opencode export <session>` prints, `{info, messages: [{info, parts}]}`.

A compaction is an assistant message with `summary: true`. The user message before it holds a part `compaction`, which may name the first
message that stays (`tail_start_id`).
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from winnow.client.readers import rows, values
from winnow.client.readers.rows import Fault, Json, Row
from winnow.client.readers.session import Boundary, Cut, Item, Turn, boundaries
from winnow.contracts.vocabulary import MessageKind, Origin, Trigger

HOST = "opencode"
#: Tools whose output is another model's text.
_SUBAGENTS = frozenset({"task"})


def read(path: Path) -> Iterator[Boundary | Fault]:
    """The boundaries of one exported session. Raise `Unreadable`."""
    exported = values.mapping(rows.document(path))
    run = values.name(values.mapping(exported.get("info")).get("id")) or path.stem[: values.NAME_CHARS]
    yield from boundaries(_items(rows.elements(path, exported.get("messages"), "message")), host=HOST, run=run)


def _items(messages: rows.Rows) -> Iterator[Item]:
    asked: Mapping[str, Any] = {}  # the last part that asked for a compaction
    for row in messages:
        if isinstance(row, Fault):
            yield row
            continue
        info = values.mapping(row.value.get("info"))
        parts = [values.mapping(part) for part in values.listing(row.value.get("parts"))]
        if info.get("role") == "assistant" and info.get("summary") is True:
            yield _cut(row, info, parts, asked)
            asked = {}
        elif info.get("role") == "assistant":
            yield from _assistant(info, parts)
        else:
            asked = next((part for part in parts if part.get("type") == "compaction"), asked)
            yield from _user(info, parts)


def _cut(row: Row, info: Mapping[str, Any], parts: list[Mapping[str, Any]], asked: Mapping[str, Any]) -> Cut:
    trigger = Trigger.OVERFLOW if asked.get("overflow") is True else Trigger.THRESHOLD if asked.get("auto") is True else None
    return Cut(
        place=row.place,
        summary="\n".join(said for part in parts if part.get("type") == "text" and (said := values.text(part.get("text")))),
        kept_from=values.text(asked.get("tail_start_id")) or None,
        trigger=Trigger.MANUAL if asked.get("auto") is False else trigger,
        at=_at(values.mapping(info.get("time")).get("created")),
        compressor=values.name(info.get("modelID")),
    )


def _assistant(info: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> Iterator[Turn]:
    """What the agent said and called, then what its tools gave back."""
    key = values.text(info.get("id"))
    said = [values.text(part.get("text")) for part in parts if part.get("type") == "text"]
    used = [part for part in parts if part.get("type") == "tool"]
    said += [values.call(part.get("tool"), values.mapping(part.get("state")).get("input")) for part in used]
    yield Turn(kind=MessageKind.ACTION, text="\n".join(one for one in said if one), key=key)
    for part in used:
        state = values.mapping(part.get("state"))
        tool = values.name(part.get("tool"))
        failed = state.get("status") == "error"
        yield Turn(
            kind=MessageKind.ENVIRONMENT,
            text=values.text(state.get("error" if failed else "output")),
            key=key,
            tool=tool,
            call_id=values.name(part.get("callID")),
            is_error=failed,
            origin=Origin.SUBAGENT if tool in _SUBAGENTS else Origin.OBSERVATION,
        )


def _user(info: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> Iterator[Turn]:
    """The user's words; what the host wrote in their place is a notice, what it hid from the model is nothing."""
    key = values.text(info.get("id"))
    for part in parts:
        if part.get("type") == "text" and part.get("ignored") is not True:
            kind = MessageKind.NOTICE if part.get("synthetic") is True else MessageKind.USER
            yield Turn(kind=kind, text=values.text(part.get("text")), key=key)


def _at(milliseconds: Json) -> str | None:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        return None
