"""A history processor of pydantic-ai, with pydantic-ai's own function model."""

import pytest

from tests.hosts.conftest import COMMITTED, SUMMARY

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed; `make test-hosts` installs the host libraries")

from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

from winnow.client.hosts.pydantic_ai import judged

HISTORY: list[ModelMessage] = [
    ModelRequest(parts=[UserPromptPart("Make the suite green")]),
    ModelResponse(parts=[TextPart("Running"), ToolCallPart("shell", {"c": "pytest"}, tool_call_id="c1")]),
    ModelRequest(parts=[ToolReturnPart("shell", "12 passed", tool_call_id="c1")]),
    ModelResponse(parts=[TextPart("Done")]),
]


async def summarised(messages: list[ModelMessage]) -> list[ModelMessage]:
    """The last message stays, a summary stands for the others."""
    return messages if len(messages) < 3 else [ModelRequest(parts=[UserPromptPart(SUMMARY)]), messages[-1]]


async def test_the_model_sees_the_committed_summary(winnow_for):
    """An agent with the processor sends the committed text; the span is what the summary stands for."""
    seen: list[list[ModelMessage]] = []

    def answer(messages, info) -> ModelResponse:
        seen.append(messages)
        return ModelResponse(parts=[TextPart("3000")])

    winnow = winnow_for("pydantic-ai")
    agent = Agent(FunctionModel(answer), capabilities=[ProcessHistory(judged(summarised, winnow.bridge, run="s"))])
    await agent.run("And the port?", message_history=HISTORY)
    [messages] = seen
    assert [part.content for one in messages for part in one.parts] == [COMMITTED, "And the port?"]
    history, retained = winnow.messages()
    assert history == [
        ("user", "Make the suite green"),
        ("action", "Running"),
        ("action", '[tool call] shell: {"c": "pytest"}'),
        ("environment", "12 passed"),
        ("action", "Done"),
    ]
    assert (retained, winnow.asked[0].history[3].tool) == ([("user", "And the port?")], "shell")


async def test_the_summary_before_is_not_a_turn_of_the_user(winnow_for):
    """What was handed over last is the previous summary of the next boundary, not a source."""
    winnow = winnow_for("pydantic-ai")
    process = judged(summarised, winnow.bridge, run="s")
    first = await process(list(HISTORY))
    await process([*first, ModelRequest(parts=[UserPromptPart("next")])])
    asked = winnow.asked[1]
    assert (asked.index, asked.previous_summary, asked.previous_boundary_id) == (2, COMMITTED, winnow.asked[0].boundary_id)
    assert COMMITTED not in [text for _, text in winnow.messages(1)[0]]


async def test_a_processor_that_only_drops_or_fails_to_summarise_passes(winnow_for):
    """Without a new message nothing is asked; an outage leaves the processor's own summary."""
    winnow = winnow_for("pydantic-ai", deadline_s=0.2)
    assert await judged(lambda messages: messages[-1:], winnow.bridge, run="s")(list(HISTORY)) == HISTORY[-1:]
    assert not winnow.asked
    winnow.outage()
    made = await judged(summarised, winnow.bridge, run="s")(list(HISTORY))
    assert made[0].parts[0].content == SUMMARY
