"""Google ADK's event compaction, with a scripted model and ADK's own runner."""

import pytest

from tests.hosts.conftest import COMMITTED, SUMMARY

pytest.importorskip("google.adk", reason="Google ADK is not installed; `make test-hosts` installs the host libraries")

from google.adk.agents import LlmAgent
from google.adk.apps.app import App, EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from winnow.client.hosts.adk import JudgedSummarizer


class Scripted(BaseLlm):
    answers: list[types.Part]

    async def generate_content_async(self, llm_request, stream=False):
        yield LlmResponse(content=types.Content(role="model", parts=[self.answers.pop(0)]))


def count_tests() -> dict:
    """Count."""
    return {"passed": 12}


async def test_adk_stores_the_committed_summary(winnow_for):
    """After an invocation ADK's session holds a compaction event with the committed text; Winnow saw calls and results."""
    winnow = winnow_for("google-adk")
    call = types.Part(function_call=types.FunctionCall(name="count_tests", args={}))
    agent = LlmAgent(name="tester", model=Scripted(model="fake", answers=[call, types.Part(text="12 passed")]), tools=[count_tests])
    summarizer = JudgedSummarizer(
        LlmEventSummarizer(llm=Scripted(model="fake", answers=[types.Part(text=SUMMARY)])), winnow.bridge, run=lambda: "session-1"
    )
    app = App(
        name="app",
        root_agent=agent,
        events_compaction_config=EventsCompactionConfig(summarizer=summarizer, compaction_interval=1, overlap_size=0),
    )
    runner = InMemoryRunner(app=app)
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    async for _ in runner.run_async(
        user_id="u", session_id=session.id, new_message=types.Content(role="user", parts=[types.Part(text="How many tests pass?")])
    ):
        pass
    stored = await runner.session_service.get_session(app_name="app", user_id="u", session_id=session.id)
    compacted = [e.actions.compaction.compacted_content for e in stored.events if e.actions and e.actions.compaction]
    assert [part.text for content in compacted for part in content.parts] == [COMMITTED]
    history, _ = winnow.messages()
    assert history == [
        ("user", "How many tests pass?"),
        ("action", "[tool call] count_tests: {}"),
        ("environment", '{"passed": 12}'),
        ("action", "12 passed"),
    ]
    assert (winnow.asked[0].run, winnow.asked[0].history[2].tool) == ("session-1", "count_tests")


async def test_a_summarizer_that_gives_nothing_is_left_alone(winnow_for):
    """No event, no judge."""

    class Nothing:
        async def maybe_summarize_events(self, *, events):
            return None

    winnow = winnow_for("google-adk")
    assert await JudgedSummarizer(Nothing(), winnow.bridge, run="r").maybe_summarize_events(events=[]) is None
    assert not winnow.asked
