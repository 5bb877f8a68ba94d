"""LangChain's and Deep Agents' SummarizationMiddleware, with a scripted model."""

import pytest

from tests.hosts.conftest import COMMITTED, SUMMARY, bypasses

pytest.importorskip("langchain", reason="LangChain is not installed; `make test-hosts` installs the host libraries")

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from winnow.client.hosts.langchain import judged


def scripted(*texts: str) -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter([AIMessage(text) for text in texts]))


HISTORY = [
    HumanMessage("Make the suite green"),
    AIMessage("Running it", tool_calls=[{"name": "shell", "args": {"c": "pytest"}, "id": "c1"}]),
    ToolMessage("12 passed", tool_call_id="c1", name="shell"),
    AIMessage("Done"),
    HumanMessage("And the port?"),
]


def middleware(*summaries: str) -> SummarizationMiddleware:
    return SummarizationMiddleware(model=scripted(*summaries), trigger=("messages", 5), keep=("messages", 1))


def test_the_committed_summary_replaces_the_history_of_a_real_agent(winnow_for):
    """The agent's state carries the committed text; Winnow saw the whole span, what stays, and the thread as the run."""
    winnow = winnow_for("langchain")
    agent = create_agent(scripted("3000"), middleware=[judged(middleware(SUMMARY), winnow.bridge)])
    state = agent.invoke({"messages": HISTORY}, config={"configurable": {"thread_id": "thread-7"}})
    assert state["messages"][0].content == f"Here is a summary of the conversation to date:\n\n{COMMITTED.strip()}"
    assert [m.content for m in state["messages"][1:]] == ["And the port?", "3000"]
    history, retained = winnow.messages()
    assert history == [
        ("user", "Make the suite green"),
        ("action", "Running it\n[tool call] shell: {'c': 'pytest'}"),
        ("environment", "12 passed"),
        ("action", "Done"),
    ]
    assert retained == [("user", "And the port?")]
    asked = winnow.asked[0]
    assert (asked.run, asked.index, asked.task, asked.previous_summary) == ("thread-7", 1, "Make the suite green", None)
    assert asked.history[2].tool == "shell"


async def test_a_second_compaction_carries_the_committed_text_as_the_previous_summary(winnow_for):
    """M is the bytes that the host carries, its boundary is named, and the summary is not also told as history; also on an event loop."""
    winnow = winnow_for("langchain")
    agent = create_agent(scripted("3000", "four", "five"), middleware=[judged(middleware(SUMMARY, SUMMARY), winnow.bridge, run="r")])
    state = await agent.ainvoke({"messages": HISTORY})
    more = [HumanMessage("3?"), AIMessage("3"), HumanMessage("4?")]
    await agent.ainvoke({"messages": [*state["messages"], *more]})
    first, second = winnow.asked
    assert (second.index, second.previous_summary, second.previous_boundary_id) == (2, COMMITTED.strip(), first.boundary_id)
    assert COMMITTED.strip() not in [text for _, text in winnow.messages(1)[0]]


def test_an_outage_leaves_the_candidate_and_is_reported(winnow_for):
    """With Winnow away the agent goes on with its own summary, and the bypass is reported once Winnow is back."""
    winnow = winnow_for("langchain", deadline_s=0.2)
    winnow.outage()
    agent = create_agent(scripted("3000"), middleware=[judged(middleware(SUMMARY), winnow.bridge, run="r")])
    state = agent.invoke({"messages": HISTORY})
    assert SUMMARY.strip() in state["messages"][0].content
    winnow.transport.outage = None
    assert winnow.bridge._client.drain(10)
    assert len(bypasses(winnow.transport.reports)) == 1


def test_an_object_without_the_seam_is_refused():
    """A wrap that would do nothing says so at once."""
    with pytest.raises(TypeError, match="SummarizationMiddleware"):
        judged(object(), None)


def test_deep_agents(winnow_for):
    """The same wrap serves Deep Agents' own middleware, whose message keeps the summary between tags."""
    pytest.importorskip("deepagents", reason="Deep Agents is not installed; `make test-hosts` installs the host libraries")
    from deepagents.backends import StateBackend
    from deepagents.middleware.summarization import SummarizationMiddleware as DeepSummarization

    from winnow.client.hosts.langchain import span

    winnow = winnow_for("langchain")
    made = judged(
        DeepSummarization(model=scripted(SUMMARY), backend=StateBackend(), trigger=("messages", 5), keep=("messages", 1)),
        winnow.bridge,
        run="r",
    )
    gone, stays = made._partition_messages(list(HISTORY), 4)
    text = made._create_summary(gone)
    assert (text, winnow.messages()[1]) == (COMMITTED.strip(), [("user", "And the port?")])
    carried = made._build_new_messages_with_path(text, "/conversation_history/x.md")
    assert span([*carried, *stays]).previous == COMMITTED.strip()
