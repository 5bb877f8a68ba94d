"""The Anthropic Messages API with a pause after compaction: the real SDK against a local server that speaks the published protocol."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.hosts.conftest import COMMITTED, SUMMARY, bypasses
from winnow.client.hosts.anthropic import BETA, JudgedMessages, NoProgress

anthropic = pytest.importorskip("anthropic", reason="the Anthropic SDK is not installed; `make test-hosts` installs the host libraries")


MESSAGES = [
    {"role": "user", "content": "Make the suite green"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "shell", "input": {"c": "pytest"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "12 passed"}]}]},
    {"role": "user", "content": "And the port?"},
]


class Api:
    """Answers requests with scripted blocks, and remembers the requests."""

    def __init__(self) -> None:
        self.script: list[tuple[str, dict]] = []
        self.requests: list[tuple[dict, str]] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                api.requests.append((body, self.headers.get("anthropic-beta", "")))
                stop, block = api.script.pop(0)
                answer = {
                    "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [block], "stop_reason": stop,
                    "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
                }  # fmt: skip
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *words: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api()
    made.thread.start()
    yield made
    made.server.shutdown()
    made.thread.join()
    made.server.server_close()


def judged(api: Api, winnow) -> JudgedMessages:
    client = anthropic.AsyncAnthropic(api_key="k", base_url=f"http://127.0.0.1:{api.server.server_port}", max_retries=0)
    return JudgedMessages(client, winnow.bridge, run="session", trigger_tokens=50_000)


async def test_the_pause_is_used_to_put_the_committed_summary_in(api, winnow_for):
    """The API compacts, the block is judged, and the same request goes on with the committed text and the last message."""
    api.script = [("compaction", {"type": "compaction", "content": SUMMARY}), ("end_turn", {"type": "text", "text": "3000"})]
    winnow = winnow_for("anthropic")
    answer, context = await judged(api, winnow).create(model="m", max_tokens=100, messages=MESSAGES, keep=1)
    assert answer.content[0].text == "3000"
    (first, beta), (second, _) = api.requests
    assert BETA in beta
    edit = {"type": "compact_20260112", "pause_after_compaction": True, "trigger": {"type": "input_tokens", "value": 50_000}}
    assert first["context_management"]["edits"] == [edit]
    assert second["messages"] == context == [{"role": "assistant", "content": [{"type": "compaction", "content": COMMITTED}]}, MESSAGES[-1]]
    history, retained = winnow.messages()
    assert history == [("user", "Make the suite green"), ("action", '[tool call] shell: {"c": "pytest"}'), ("environment", "12 passed")]
    assert (retained, winnow.asked[0].history[2].tool) == ([("user", "And the port?")], "shell")


async def test_the_next_compaction_carries_the_committed_block(api, winnow_for):
    """The block that the caller kept is the previous summary."""
    block, text = ("compaction", {"type": "compaction", "content": SUMMARY}), ("end_turn", {"type": "text", "text": "ok"})
    api.script = [block, text, block, text]
    winnow = winnow_for("anthropic")
    messages = judged(api, winnow)
    answer, context = await messages.create(model="m", max_tokens=100, messages=MESSAGES)
    await messages.create(model="m", max_tokens=100, messages=[*context, {"role": "assistant", "content": answer.content}, MESSAGES[-1]])
    assert (winnow.asked[1].index, winnow.asked[1].previous_summary) == (2, COMMITTED)


@pytest.mark.parametrize("sealed", [{"signature": "s"}, {"encrypted_content": "e"}])
async def test_a_sealed_block_is_passed_on_and_reported(api, winnow_for, sealed):
    """What the API would refuse back is not edited: the block goes on as it is, and Winnow is told that it was bypassed."""
    block = {"type": "compaction", "content": SUMMARY, **sealed}
    api.script = [("compaction", block), ("end_turn", {"type": "text", "text": "ok"})]
    winnow = winnow_for("anthropic")
    _, context = await judged(api, winnow).create(model="m", max_tokens=100, messages=MESSAGES)
    assert context == [{"role": "assistant", "content": [block]}]
    assert winnow.bridge._client.drain(10)
    assert (winnow.asked, bypasses(winnow.transport.reports)) == ([], ["signed_block"])


async def test_an_api_that_compacts_for_ever_is_an_error(api, winnow_for):
    """Compaction without progress ends with words on what to do."""
    api.script = [("compaction", {"type": "compaction", "content": SUMMARY})] * 10
    with pytest.raises(NoProgress, match="trigger"):
        await judged(api, winnow_for("anthropic")).create(model="m", max_tokens=100, messages=MESSAGES)
