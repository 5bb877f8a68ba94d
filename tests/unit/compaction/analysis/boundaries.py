"""Boundaries for the tests of analysis: made up, and from the development set."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.harness.data import shared_data
from winnow.compaction.analysis import Analysis, analyse
from winnow.compaction.parse import parse
from winnow.compaction.segments import Parsed
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import MessageKind, Origin, Rules


def summary(*entries: str, section: str = "Decisions") -> Parsed:
    """An OpenClaw summary with these bullets under one heading."""
    return parse(f"## {section}\n" + "".join(f"- {entry}\n" for entry in entries), profile="openclaw")


def action(i: int, text: str) -> Message:
    return Message(i=i, kind=MessageKind.ACTION, text=text)


def user(i: int, text: str) -> Message:
    return Message(i=i, kind=MessageKind.USER, text=text)


def notice(i: int, text: str) -> Message:
    return Message(i=i, kind=MessageKind.NOTICE, text=text)


def output(i: int, text: str, *, tool: str | None = None, origin: Origin = Origin.OBSERVATION) -> Message:
    return Message(i=i, kind=MessageKind.ENVIRONMENT, text=text, tool=tool, origin=origin)


def look(
    parsed: Parsed,
    *history: Message,
    task: str = "",
    previous: Parsed | None = None,
    retained: Sequence[Message] = (),
    user_turns_survive: bool = False,
    rules: Rules = Rules.WINNOW,
) -> Analysis:
    """Analyse with everything optional."""
    return analyse(
        parsed, task=task, previous=previous, history=history, retained=retained, user_turns_survive=user_turns_survive, rules=rules
    )


@dataclass(frozen=True, slots=True)
class DevBoundary:
    """One line of the development set, ready to analyse."""

    line: dict[str, Any]
    parsed: Parsed
    previous: Parsed | None
    messages: tuple[Message, ...]

    def analyse(self, *, rules: Rules = Rules.WINNOW) -> Analysis:
        return look(self.parsed, *self.messages, task=self.line["task"], previous=self.previous, rules=rules)


def dev() -> list[DevBoundary]:
    """The development set; the test that asks is skipped where it is absent."""
    found = []
    for raw in shared_data("sourcebench", "dev.jsonl").read_text("utf-8").splitlines():
        line = json.loads(raw)
        previous = line["previous_summary"]
        found.append(
            DevBoundary(
                line=line,
                parsed=parse(line["candidate_summary"], profile="openclaw"),
                previous=None if previous is None else parse(previous, profile="openclaw"),
                messages=tuple(Message(**message) for message in (*line["history"], *line["retained"])),
            )
        )
    return found
