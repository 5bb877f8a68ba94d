"""OpenHands: the events of a conversation, in either of its two forms.

The agent SDK keeps one file an event (`events/event-00012-<id>.json`, told apart by `kind`); give all of them. The older server keeps them
in one array (told apart by `action` and `observation`). All files given are one conversation, in the order of their names. A condensation
names the events that it forgets, and the summary that stands for them.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from winnow.client.readers import rows, values
from winnow.client.readers.rows import Fault, Json, Row
from winnow.client.readers.session import Boundary, Cut, Item, Turn, boundaries
from winnow.contracts.vocabulary import MessageKind, Origin

HOST = "openhands"
#: Observations of the older server that are not the environment's.
_AGENTS = {"think": Origin.ECHO, "recall": Origin.ECHO, "delegate": Origin.SUBAGENT}
#: Older actions and observations that never reach the model.
_SILENT = frozenset({"change_agent_state", "agent_state_changed", "null", "system", "condensation_request", "user_rejected"})


def read(paths: Sequence[Path]) -> Iterator[Boundary | Fault]:
    """The boundaries of one conversation, whose name is that of its folder. Raise `Unreadable`."""
    ordered = sorted(paths, key=lambda path: path.name)
    place = ordered[0].absolute().parent if ordered else Path()
    folder = place.parent if place.name == "events" else place
    run = values.name(ordered[0].stem if len(ordered) == 1 else folder.name) if ordered else None
    yield from boundaries(_items([row for path in ordered for row in _rows(path)]), host=HOST, run=run or "openhands")


def _rows(path: Path) -> rows.Rows:
    return rows.json_or_lines(path, _events, "event")


def _events(value: Json) -> Json:
    """The events in a document: an array, an object around one, or one event."""
    if not isinstance(value, dict):
        return value
    around = next((value[key] for key in ("history", "events", "trajectory") if isinstance(value.get(key), list)), None)
    return [value] if around is None else around


def _items(found: Sequence[Row | Fault]) -> Iterator[Item]:
    keys: list[str] = []
    for row in found:
        if isinstance(row, Fault):
            yield row
            continue
        value = row.value
        key = str(value.get("id", ""))[: values.NAME_CHARS]
        args = values.mapping(value.get("args"))
        if value.get("kind") == "Condensation" or value.get("action") == "condensation":
            said = args if value.get("action") == "condensation" else value
            gone = _forgotten(said, keys)
            yield Cut(
                place=row.place,
                summary=values.text(said.get("summary")),
                kept=frozenset(keys) - gone,
                at=values.moment(value.get("timestamp")),
            )
        else:
            keys.append(key)
            turn = turn_of(value, key) if "kind" in value else _older(value, args, key)
            if turn is not None:
                yield turn


def _forgotten(said: Mapping[str, Any], keys: Sequence[str]) -> frozenset[str]:
    """Keys of the events that a condensation forgets: listed, or from the first to the last."""
    listed = values.listing(said.get("forgotten_event_ids"))
    if listed:
        return frozenset(str(one) for one in listed)
    first, last = values.count(said.get("forgotten_events_start_id")), values.count(said.get("forgotten_events_end_id"))
    if first is None or last is None:
        return frozenset()
    return frozenset(key for key in keys if key.isascii() and key.isdigit() and first <= int(key) <= last)


def turn_of(value: Mapping[str, Any], key: str) -> Turn | None:
    """The turn in an event of the agent SDK, as JSON; None for what never reaches the model."""
    kind = value.get("kind")
    tool, call = values.name(value.get("tool_name")), values.name(value.get("tool_call_id"))
    if kind == "MessageEvent":
        message = values.mapping(value.get("llm_message"))
        said = values.blocks(message.get("content"), "text")
        by_user = message.get("role") == "user" and value.get("source") == "user"
        by_agent = message.get("role") == "assistant"
        return Turn(kind=MessageKind.USER if by_user else MessageKind.ACTION if by_agent else MessageKind.NOTICE, text=said, key=key)
    if kind == "ActionEvent":
        function = values.mapping(value.get("tool_call"))
        arguments = function.get("arguments", values.mapping(function.get("function")).get("arguments", value.get("action")))
        thought = values.blocks(value.get("thought"), "text")
        return Turn(kind=MessageKind.ACTION, text="\n".join(p for p in (thought, values.call(tool, arguments)) if p), key=key)
    if kind == "ObservationEvent":
        seen = values.mapping(value.get("observation"))
        said = values.blocks(seen.get("content", seen.get("output", seen.get("text"))), "text")
        return Turn(
            kind=MessageKind.ENVIRONMENT,
            text=said,
            key=key,
            tool=tool,
            call_id=call,
            is_error=seen.get("is_error") is True,
            origin=Origin.SUBAGENT if tool in {"delegate", "task"} else Origin.OBSERVATION,
        )
    if kind == "AgentErrorEvent":  # the scaffold's words: the call was never carried out
        return Turn(kind=MessageKind.NOTICE, text=values.text(value.get("error")), key=key)
    return None


def _older(value: Mapping[str, Any], args: Mapping[str, Any], key: str) -> Turn | None:
    """An event of the older server."""
    action, observation = values.name(value.get("action")), values.name(value.get("observation"))
    if observation and observation not in _SILENT:
        failed = values.mapping(values.mapping(value.get("extras")).get("metadata")).get("exit_code") not in (None, 0, -1)
        return Turn(
            kind=MessageKind.NOTICE if observation == "error" else MessageKind.ENVIRONMENT,
            text=values.text(value.get("content")),
            key=key,
            tool=observation,
            is_error=failed,
            origin=_AGENTS.get(observation, Origin.OBSERVATION),
        )
    if action == "message":
        kind = MessageKind.USER if value.get("source") == "user" else MessageKind.ACTION
        return Turn(kind=kind, text=values.text(args.get("content")), key=key)
    if action and action not in _SILENT:
        shown = {name: said for name, said in args.items() if name != "thought" and said not in (None, "")}
        thought = values.text(args.get("thought"))
        return Turn(kind=MessageKind.ACTION, text="\n".join(p for p in (thought, values.call(action, shown)) if p), key=key)
    return None
