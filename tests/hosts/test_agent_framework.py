"""Microsoft Agent Framework's SummarizationStrategy, with a scripted chat client."""

from types import SimpleNamespace

import pytest

from tests.hosts.conftest import COMMITTED, SUMMARY

pytest.importorskip("agent_framework", reason="Agent Framework is not installed; `make test-hosts` installs the host libraries")

from agent_framework import Content, Message
from agent_framework._compaction import SummarizationStrategy, annotate_message_groups

from winnow.client.hosts.agent_framework import JudgedStrategy, excluded


class Scripted:
    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    async def get_response(self, messages, *, stream=False, **options):
        return SimpleNamespace(text=self.texts.pop(0))


def conversation() -> list[Message]:
    return [
        Message(role="user", contents=["How many tests pass?"]),
        Message(role="assistant", contents=[Content.from_function_call(call_id="c1", name="shell", arguments='{"c": "pytest"}')]),
        Message(role="tool", contents=[Content.from_function_result(call_id="c1", result="12 passed")]),
        Message(role="assistant", contents=["12"]),
        Message(role="user", contents=["And the port?"]),
        Message(role="assistant", contents=["3000"]),
    ]


async def test_the_summary_in_the_list_is_the_committed_one(winnow_for):
    """The strategy's summary message carries the committed text; what it excluded is the span, what is visible stays."""
    winnow = winnow_for("agent-framework")
    strategy = JudgedStrategy(SummarizationStrategy(client=Scripted(SUMMARY, SUMMARY), target_count=2, threshold=0), winnow.bridge, run="s")
    messages = conversation()
    annotate_message_groups(messages)
    assert await strategy(messages)
    shown = [m.text for m in messages if not excluded(m)]
    assert shown == [COMMITTED.strip(), "And the port?", "3000"]
    history, retained = winnow.messages()
    assert history == [
        ("user", "How many tests pass?"),
        ("action", '[tool call] shell: {"c": "pytest"}'),
        ("environment", "12 passed"),
        ("action", "12"),
    ]
    assert retained == [("user", "And the port?"), ("action", "3000")]

    messages += [Message(role="user", contents=["next"]), Message(role="assistant", contents=["ok"])]
    annotate_message_groups(messages)
    assert await strategy(messages)
    assert (winnow.asked[1].index, winnow.asked[1].previous_summary) == (2, COMMITTED.strip())


async def test_below_the_threshold_nothing_is_asked(winnow_for):
    """A strategy that does nothing costs nothing."""
    winnow = winnow_for("agent-framework")
    strategy = JudgedStrategy(SummarizationStrategy(client=Scripted(), target_count=10), winnow.bridge, run="s")
    messages = conversation()
    annotate_message_groups(messages)
    assert not await strategy(messages)
    assert not winnow.asked
