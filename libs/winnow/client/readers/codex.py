"""Codex CLI: the rollout of a session, `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`.

A row is `{timestamp, type, payload}`. Of them `response_item` is what the model saw, `compacted` a compaction, and `event_msg` the screen's
copy, of which only `thread_rolled_back` changes the context. User messages stay beside the summary. A compaction that the provider made
is encrypted: its message is empty, and it is told as a fault.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from winnow.client.readers import rows, values
from winnow.client.readers.rows import Fault, Json, Row
from winnow.client.readers.session import Boundary, Cut, Item, Rewind, Turn, boundaries
from winnow.contracts.vocabulary import MessageKind

HOST = "codex"
#: Starts of user messages that the host wrote.
_NOTICES = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<permissions",
    "<turn_aborted>",
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
)
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output", "mcp_tool_call_output"})
_TEXTS = ("input_text", "output_text", "text")


def read(path: Path) -> Iterator[Boundary | Fault]:
    """The boundaries of one rollout. Raise `Unreadable`."""
    found: list[Row | Fault] = list(rows.lines(path))
    metas = (row.value for row in found if isinstance(row, Row) and row.value.get("type") == "session_meta")
    run = next((said for meta in metas if (said := values.name(_payload(meta).get("id")))), None) or path.stem[: values.NAME_CHARS]
    yield from boundaries(_items(found), host=HOST, run=run)


def _items(found: list[Row | Fault]) -> Iterator[Item]:
    tools: dict[str, str] = {}
    asked: set[str] = set()  # one for all compactions: each is dealt with before the next turn is read
    compressor: str | None = None
    for number, row in enumerate(found):
        if isinstance(row, Fault):
            yield row
            continue
        payload = _payload(row.value)
        match row.value.get("type"):
            case "response_item":
                turn = turn_of(payload, str(number), tools)
                if turn is not None:
                    if turn.kind is MessageKind.USER:
                        asked.add(turn.key)
                    yield turn
            case "turn_context":
                compressor = values.name(payload.get("model")) or compressor
            case "event_msg" if payload.get("type") == "thread_rolled_back":
                yield Rewind(turns=values.count(payload.get("num_turns")) or 0)
            case "compacted":
                yield Cut(
                    place=row.place,
                    summary=values.text(payload.get("message")),
                    kept=asked,
                    at=values.moment(row.value.get("timestamp")),
                    compressor=compressor,
                )


def turn_of(item: Json, key: str, tools: dict[str, str]) -> Turn | None:
    """The turn in a response item; reasoning, snapshots and whatever is unknown is none."""
    kind, call = values.text(item.get("type")), values.name(item.get("call_id"))
    if kind == "message":
        said = values.blocks(item.get("content"), *_TEXTS)
        role = item.get("role")
        if role == "assistant":
            return Turn(kind=MessageKind.ACTION, text=said, key=key)
        notice = role != "user" or said.lstrip().startswith(_NOTICES)
        return Turn(kind=MessageKind.NOTICE if notice else MessageKind.USER, text=said, key=key)
    if kind in _CALLS:
        tool = values.name(item.get("name")) or kind.removesuffix("_call")
        if call:
            tools[call] = tool
        arguments = next((item[a] for a in ("arguments", "input", "action") if a in item), None)
        return Turn(kind=MessageKind.ACTION, text=values.call(tool, arguments), key=key)
    if kind in _OUTPUTS:
        said, failed = _output(item.get("output"))
        return Turn(kind=MessageKind.ENVIRONMENT, text=said, key=key, tool=tools.get(call or ""), call_id=call, is_error=failed)
    return None


def _output(output: Json) -> tuple[str, bool]:
    """Text of an output and whether the tool failed: plain text, blocks, or an object, which older versions wrote as a JSON string."""
    if isinstance(output, str) and output.startswith('{"output":'):
        try:
            output = json.loads(output)
        except (ValueError, RecursionError):
            return values.text(output), False
    if isinstance(output, dict):
        code = values.mapping(output.get("metadata")).get("exit_code")
        said = output.get("output") if "output" in output else output.get("content", output.get("content_items"))
        return values.blocks(said, *_TEXTS), output.get("success") is False or code not in (None, 0)
    return values.blocks(output, *_TEXTS), False


def _payload(value: dict[str, Any]) -> Json:
    return values.mapping(value.get("payload"))
