"""The examples of `docs/hosts/`, run as they stand there with the real libraries; what a page leaves to its reader is made here."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from winnow.client import SyncWinnowClient

PAGES = Path(__file__).parents[2] / "docs" / "hosts"
#: What pages of all hosts leave to the reader. Nobody listens where they point: no example waits for Winnow, and none needs it to go on.
COMMON = {"api_key": "wnw_" + "x" * 43, "current_session": ContextVar("session", default="session-1")}


def example(page: str) -> str:
    """The page's code."""
    (found,) = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    return found


async def run(page: str, **left_out: Any) -> dict[str, Any]:
    """Run the page's code, which may await; what it defines."""
    names = COMMON | left_out
    made = eval(compile(example(page), f"{page}.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)  # noqa: S307  our own pages
    if inspect.isawaitable(made):
        await made
    return names


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the clients that the examples open, and wait for no report: nobody takes them."""
    opened: list[SyncWinnowClient] = []
    enter: Callable[[SyncWinnowClient], SyncWinnowClient] = SyncWinnowClient.__enter__

    def remember(client: SyncWinnowClient) -> SyncWinnowClient:
        opened.append(client)
        return enter(client)

    monkeypatch.setattr(SyncWinnowClient, "__enter__", remember)
    yield
    for client in opened:
        client.close()


@pytest.mark.parametrize("page", ["langchain", "openhands", "google-adk", "agent-framework", "anthropic", "pydantic-ai"])
def test_an_example_has_the_lines_that_a_newcomer_reads(page):
    """Fifteen lines at most."""
    assert len(example(page).splitlines()) <= 15


async def test_langchain():
    """The example's agent answers although nobody listens where it says that Winnow is."""
    pytest.importorskip("langchain", reason="LangChain is not installed; `make test-hosts` installs the host libraries")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage

    model = GenericFakeChatModel(messages=iter([AIMessage("3000")]))
    made = await run("langchain", small=model, model=model, tools=[], messages=[HumanMessage("Which port?")])
    assert made["summaries"].__class__.__name__ == "SummarizationMiddleware"


async def test_google_adk():
    """The example's app takes the summarizer."""
    pytest.importorskip("google.adk", reason="Google ADK is not installed; `make test-hosts` installs the host libraries")
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm

    class Model(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            yield None

    made = await run("google-adk", llm=Model(model="fake"), agent=LlmAgent(name="tester", model=Model(model="fake")))
    assert made["app"].events_compaction_config.summarizer is made["summarizer"]


async def test_agent_framework():
    """The example's agent takes the strategy."""
    pytest.importorskip("agent_framework", reason="Agent Framework is not installed; `make test-hosts` installs the host libraries")

    class Client:
        async def get_response(self, messages, *, stream=False, **options):
            raise AssertionError

    made = await run("agent-framework", small=Client(), chat_client=Client())
    assert made["agent"] is not None


async def test_anthropic(monkeypatch):
    """The example's request goes out, and the API's own error comes back as the SDK raises it."""
    anthropic = pytest.importorskip("anthropic", reason="the Anthropic SDK is not installed; `make test-hosts` installs the host libraries")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-none")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(anthropic.APIConnectionError):
        await run("anthropic", model="claude-fake", messages=[{"role": "user", "content": "Which port?"}], tools=[])


async def test_pydantic_ai():
    """The example's agent answers with the processor in its way."""
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed; `make test-hosts` installs the host libraries")
    from pydantic_ai.models.test import TestModel

    made = await run("pydantic-ai", model=TestModel(custom_output_text="3000"), summarize_old_messages=lambda messages: messages)
    assert (await made["agent"].run("Which port?")).output == "3000"


async def test_openhands():
    """The example's agent takes the condenser."""
    pytest.importorskip("openhands.sdk", reason="the OpenHands SDK is not installed: it needs Python 3.12")
    from openhands.sdk.testing import TestLLM

    llm = TestLLM.from_messages([])
    made = await run("openhands", llm=llm, tools=[], conversation=None)
    assert made["agent"].condenser is not None
