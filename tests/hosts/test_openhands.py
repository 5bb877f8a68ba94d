"""OpenHands' condenser, with the SDK's own scripted model. The SDK needs Python 3.12 or newer."""

import os

import pytest

from tests.hosts.conftest import COMMITTED, SUMMARY

os.environ.setdefault("OPENHANDS_SUPPRESS_BANNER", "1")
pytest.importorskip(
    "openhands.sdk", reason="the OpenHands SDK is not installed: it needs Python 3.12, Winnow is tested on the oldest it supports"
)

from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.context.condenser.base import CondenserBase
from openhands.sdk.context.view import View
from openhands.sdk.event import Condensation, MessageEvent
from openhands.sdk.llm import Message, TextContent
from openhands.sdk.testing import TestLLM

from winnow.client.hosts.openhands import JudgedCondenser

TestLLM.__test__ = False


def said(role: str, text: str) -> MessageEvent:
    source = "user" if role == "user" else "agent"
    return MessageEvent(source=source, llm_message=Message(role=role, content=[TextContent(text=text)]))


def summarised(*texts: str) -> LLMSummarizingCondenser:
    llm = TestLLM.from_messages([Message(role="assistant", content=[TextContent(text=text)]) for text in texts])
    return LLMSummarizingCondenser(llm=llm, max_size=6, keep_first=1)


def conversation() -> list[MessageEvent]:
    return [said("user" if i % 2 == 0 else "assistant", f"turn {i}") for i in range(8)]


def test_the_condensation_carries_the_committed_summary(winnow_for):
    """What the condenser forgets is the span, what stays is retained, and the event has the committed text; the next one carries it."""
    winnow = winnow_for("openhands")
    condenser = JudgedCondenser(inner=summarised(SUMMARY, SUMMARY)).through(winnow.bridge, run="conversation")
    events = conversation()
    made = condenser.condense(View.from_events(events))
    assert isinstance(made, Condensation)
    assert made.summary == COMMITTED
    history, retained = winnow.messages()
    assert {text for _, text in history} == {f"turn {i}" for i, e in enumerate(events) if e.id in made.forgotten_event_ids}
    assert len(history) + len(retained) == 8
    assert (winnow.asked[0].run, winnow.asked[0].task) == ("conversation", "turn 0")
    condenser.condense(View.from_events([*events, made, *conversation()]))
    assert (winnow.asked[1].index, winnow.asked[1].previous_summary) == (2, COMMITTED)


async def test_an_event_loop_and_an_outage(winnow_for):
    """The asynchronous way is the same; with Winnow away the condensation is the condenser's own."""
    winnow = winnow_for("openhands", deadline_s=0.2)
    condenser = JudgedCondenser(inner=summarised(SUMMARY, SUMMARY)).through(winnow.bridge, run="conversation")
    assert (await condenser.acondense(View.from_events(conversation()))).summary == COMMITTED
    winnow.outage()
    assert (await condenser.acondense(View.from_events(conversation()))).summary == SUMMARY


def test_the_host_stores_and_loads_it(winnow_for):
    """The condenser survives the host's own serialisation, without the bridge: then it is the inner one."""
    condenser = JudgedCondenser(inner=summarised(SUMMARY)).through(winnow_for("openhands").bridge, run="r")
    loaded = CondenserBase.model_validate(condenser.model_dump())
    assert isinstance(loaded, JudgedCondenser)
    assert isinstance(loaded.inner, LLMSummarizingCondenser)
    assert loaded._bridge is None
