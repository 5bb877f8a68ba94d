"""The ways in which hosts talk to a model: OpenAI's Responses and Chat Completions, Anthropic's Messages, Gemini's generateContent.

Each style reads a request as turns, takes the summary out of an answer, and puts another in its place; whole or streamed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from winnow.client.building import Turn, action, output, user
from winnow.client.hosts.anthropic import turns as anthropic_turns
from winnow.client.proxy import sse
from winnow.client.readers import values
from winnow.client.readers.codex import turn_of
from winnow.client.readers.session import as_turn

_TEXTS = ("input_text", "output_text", "text")


class Style(Protocol):
    """One API."""

    def system(self, body: Mapping[str, Any]) -> str:
        """What the request tells the model beside the conversation."""

    def messages(self, body: Mapping[str, Any]) -> list[list[Turn]]:
        """The turns of each message, in order; the last one is the request itself."""

    def summary(self, answer: "Answer") -> str | None:
        """The one text of the answer; None where there is none, or several, or a call beside it."""

    def replaced(self, answer: "Answer", old: str, new: str) -> bytes:
        """The answer's bytes with the new text in the place of the old one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer of a model, read whole: one JSON value, or the events of a stream."""

    value: Mapping[str, Any]
    events: Sequence[sse.Block] = ()

    @classmethod
    def of(cls, body: bytes) -> "Answer":
        """Read an answer. Raise `ValueError` where it is neither JSON nor a stream of events."""
        if body.lstrip()[:1] == b"{":
            value = json.loads(body)
            return cls(value=value if isinstance(value, dict) else {})
        events = sse.blocks(body)
        if not any(event.data is not None for event in events):
            raise ValueError("neither JSON nor a stream of events")
        return cls(value={}, events=events)


class Responses:
    """OpenAI's Responses API, as Codex speaks it."""

    def system(self, body: Mapping[str, Any]) -> str:
        """The field `instructions`."""
        return values.text(body.get("instructions"))

    def messages(self, body: Mapping[str, Any]) -> list[list[Turn]]:
        """The items of `input`."""
        said = body.get("input")
        if isinstance(said, str):
            return [[user(said)]]
        tools: dict[str, str] = {}
        made = [turn_of(values.mapping(item), "", tools) for item in values.listing(said)]
        return [[as_turn(turn)] if turn is not None and turn.text else [] for turn in made]

    def summary(self, answer: Answer) -> str | None:
        """The text of the one message of the finished response."""
        return _only(_response_texts(self._final(answer)))

    def replaced(self, answer: Answer, old: str, new: str) -> bytes:
        """Deltas before the first are dropped into it; every event that repeats the text has the new one."""
        if not answer.events:
            return _json(_with_texts(dict(answer.value), old, new))
        begun = False

        def change(data: dict[str, Any]) -> dict[str, Any] | None:
            nonlocal begun
            match data.get("type"):
                case "response.output_text.delta":
                    if begun:
                        return None
                    begun = True
                    return data | {"delta": new}
                case "response.output_text.done":
                    return data | {"text": new} if data.get("text") == old else data
                case _:
                    changed: dict[str, Any] = _with_texts(data, old, new)
                    return changed

        return sse.rewritten(answer.events, change)

    def _final(self, answer: Answer) -> Mapping[str, Any]:
        """The response as it ended; of a stream whose last event leaves the output out, as Codex gets it, its finished items."""
        if not answer.events:
            return answer.value
        data = [event.data for event in answer.events if event.data is not None]
        items = [one.get("item") for one in data if one.get("type") == "response.output_item.done"]
        done = any(one.get("type") == "response.completed" for one in data)
        return {"output": items} if done else {}


class Chat:
    """OpenAI's Chat Completions API, and all that copy it."""

    def system(self, body: Mapping[str, Any]) -> str:
        """The messages of roles `system` and `developer`."""
        said = [values.mapping(one) for one in values.listing(body.get("messages"))]
        return "\n".join(values.blocks(one.get("content"), *_TEXTS) for one in said if one.get("role") in ("system", "developer"))

    def messages(self, body: Mapping[str, Any]) -> list[list[Turn]]:
        """All other messages."""
        tools: dict[str, str] = {}
        made: list[list[Turn]] = []
        for one in (values.mapping(item) for item in values.listing(body.get("messages"))):
            said, role = values.blocks(one.get("content"), *_TEXTS), one.get("role")
            if role == "tool":
                call = values.name(one.get("tool_call_id"))
                made.append([output(said, tool=tools.get(call or ""), call_id=call)])
            elif role == "assistant":
                calls = [values.mapping(c) for c in values.listing(one.get("tool_calls"))]
                functions = [values.mapping(c.get("function")) for c in calls]
                tools |= {str(c.get("id")): name for c, f in zip(calls, functions, strict=True) if (name := values.name(f.get("name")))}
                words = [said, *(values.call(f.get("name"), f.get("arguments")) for f in functions)]
                made.append([action("\n".join(word for word in words if word))])
            elif role == "user":
                made.append([user(said)])
            else:
                made.append([])
        return made

    def summary(self, answer: Answer) -> str | None:
        """The content of the one choice."""
        if not answer.events:
            choices = values.listing(answer.value.get("choices"))
            message = values.mapping(values.mapping(choices[0]).get("message")) if len(choices) == 1 else {}
            return None if message.get("tool_calls") else values.text(message.get("content")) or None
        parts: list[str] = []
        for choice in (c for event in answer.events for c in values.listing(values.mapping(event.data).get("choices"))):
            delta = values.mapping(values.mapping(choice).get("delta"))
            if values.mapping(choice).get("index") or delta.get("tool_calls"):
                return None
            parts.append(values.text(delta.get("content")))
        return "".join(parts) or None

    def replaced(self, answer: Answer, old: str, new: str) -> bytes:
        """The first piece of content is the new text, the others are empty."""
        if not answer.events:
            value = json.loads(json.dumps(answer.value))
            value["choices"][0]["message"]["content"] = new
            return _json(value)
        begun = False

        def change(data: dict[str, Any]) -> dict[str, Any]:
            nonlocal begun
            for choice in values.listing(data.get("choices")):
                delta = choice.get("delta") if isinstance(choice, dict) else None
                if isinstance(delta, dict) and delta.get("content"):
                    delta["content"] = "" if begun else new
                    begun = True
            return data

        del old  # the deltas together are the old text
        return sse.rewritten(answer.events, change)


class Messages:
    """Anthropic's Messages API."""

    def system(self, body: Mapping[str, Any]) -> str:
        """The field `system`."""
        return values.blocks(body.get("system"), *_TEXTS)

    def messages(self, body: Mapping[str, Any]) -> list[list[Turn]]:
        """The field `messages`."""
        tools: dict[str, str] = {}
        return [anthropic_turns(values.mapping(one), tools) for one in values.listing(body.get("messages"))]

    def summary(self, answer: Answer) -> str | None:
        """The text of the one text block."""
        texts: dict[object, list[str]] = {}
        if not answer.events:
            blocks = [values.mapping(b) for b in values.listing(answer.value.get("content"))]
            texts = {i: [values.text(b.get("text"))] for i, b in enumerate(blocks) if b.get("type") == "text"}
            called = any(b.get("type") == "tool_use" for b in blocks)
        else:
            data = [event.data for event in answer.events if event.data is not None]
            called = any(values.mapping(one.get("content_block")).get("type") == "tool_use" for one in data)
            for one in data:
                delta = values.mapping(one.get("delta"))
                if one.get("type") == "content_block_delta" and delta.get("type") == "text_delta":
                    texts.setdefault(one.get("index"), []).append(values.text(delta.get("text")))
        return None if called else _only(["".join(parts) for parts in texts.values()])

    def replaced(self, answer: Answer, old: str, new: str) -> bytes:
        """The first delta is the new text, the others are dropped."""
        if not answer.events:
            value = json.loads(json.dumps(answer.value))
            for block in value["content"]:
                if block.get("type") == "text" and block.get("text") == old:
                    block["text"] = new
            return _json(value)
        begun = False

        def change(data: dict[str, Any]) -> dict[str, Any] | None:
            nonlocal begun
            delta = data.get("delta")
            if data.get("type") == "content_block_delta" and isinstance(delta, dict) and delta.get("type") == "text_delta":
                if begun:
                    return None
                begun = True
                delta["text"] = new
            return data

        return sse.rewritten(answer.events, change)


class Gemini:
    """Gemini's `generateContent`, whole answers alone: Gemini CLI does not stream its summaries."""

    def system(self, body: Mapping[str, Any]) -> str:
        """The field `systemInstruction`."""
        said = values.mapping(body.get("systemInstruction"))
        return values.text(said.get("text")) or _joined(said.get("parts"))

    def messages(self, body: Mapping[str, Any]) -> list[list[Turn]]:
        """The field `contents`: texts and calls of the model, texts of the user, answers of functions."""
        made: list[list[Turn]] = []
        for content in (values.mapping(one) for one in values.listing(body.get("contents"))):
            parts = [values.mapping(part) for part in values.listing(content.get("parts"))]
            calls = [values.mapping(part.get("functionCall")) for part in parts if "functionCall" in part]
            answers = [values.mapping(part.get("functionResponse")) for part in parts if "functionResponse" in part]
            turns = [output(_answered(one.get("response")), tool=values.name(one.get("name"))) for one in answers]
            words = [_joined(parts), *(values.call(one.get("name"), one.get("args")) for one in calls)]
            said = "\n".join(word for word in words if word)
            made.append([*turns, *([(action if content.get("role") == "model" else user)(said)] if said else [])])
        return made

    def summary(self, answer: Answer) -> str | None:
        """The one text of the one candidate; thoughts are none."""
        candidates = [values.mapping(one) for one in values.listing(answer.value.get("candidates"))]
        parts = [values.mapping(p) for one in candidates for p in values.listing(values.mapping(one.get("content")).get("parts"))]
        if len(candidates) != 1 or any("functionCall" in part for part in parts):
            return None
        return _only([values.text(part.get("text")) for part in parts if part.get("thought") is not True])

    def replaced(self, answer: Answer, old: str, new: str) -> bytes:
        """The part with the old text has the new one."""
        value = json.loads(json.dumps(answer.value))
        for part in value["candidates"][0]["content"]["parts"]:
            if part.get("text") == old and part.get("thought") is not True:
                part["text"] = new
        return _json(value)


def style_of(path: str) -> Style | None:
    """The style of a request's path, whatever stands before its end; None for every other request."""
    ends: tuple[tuple[str, Style], ...] = (
        ("/responses", Responses()),
        ("/chat/completions", Chat()),
        ("/messages", Messages()),
        (":generateContent", Gemini()),
    )
    for end, style in ends:
        if path.rstrip("/").endswith(end):
            return style
    return None


def asked(turns: Sequence[Turn]) -> str:
    """The text of a request's last message."""
    return "\n".join(str(turn["text"]) for turn in turns if turn["kind"] in {"user", "notice"})


def _joined(parts: Any) -> str:  # noqa: ANN401  whatever JSON can hold
    """The texts of Gemini's parts, without thoughts."""
    said = [values.mapping(part) for part in values.listing(parts)]
    return "\n".join(text for part in said if part.get("thought") is not True and (text := values.text(part.get("text"))))


def _answered(response: Any) -> str:  # noqa: ANN401  whatever JSON can hold
    """What a function gave back: its `output`, `content` or `error` where that is a text, else all of it as JSON."""
    said = values.mapping(response)
    found = next((said[name] for name in ("output", "content", "error") if isinstance(said.get(name), str)), response)
    return values.text(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False))


def _response_texts(response: Mapping[str, Any]) -> list[str]:
    """Texts of a response's messages; several where it calls a tool beside them, which is no summary."""
    items = [values.mapping(item) for item in values.listing(response.get("output"))]
    if any(str(item.get("type")).endswith("_call") for item in items):
        return []
    content = [values.mapping(c) for item in items if item.get("type") == "message" for c in values.listing(item.get("content"))]
    return [values.text(c.get("text")) for c in content if c.get("type") == "output_text"]


def _only(texts: Sequence[str]) -> str | None:
    said = [text for text in texts if text]
    return said[0] if len(said) == 1 else None


def _with_texts(value: Any, old: str, new: str) -> Any:  # noqa: ANN401  whatever JSON can hold
    """A value in which each text part that says the old text says the new one."""
    if isinstance(value, dict):
        if value.get("type") == "output_text" and value.get("text") == old:
            return value | {"text": new}
        return {key: _with_texts(one, old, new) for key, one in value.items()}
    return [_with_texts(one, old, new) for one in value] if isinstance(value, list) else value


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
