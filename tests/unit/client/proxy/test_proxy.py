"""The proxy: everything passes byte for byte, and a compaction of a known host comes back without its unsupported entries."""

import asyncio
import gzip
import json

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.client.answers import pruned
from winnow.client import SyncWinnowClient
from winnow.client.hosts import Bridge
from winnow.client.proxy import Proxy, app, sse
from winnow.client.testing import MemoryTransport
from winnow.contracts.errors import Retryable
from winnow.contracts.events import RuntimeEvent
from winnow.contracts.vocabulary import Mode, RuntimeEventKind

SUMMARY = "**Remaining**\n- 12 tests passed\n- PLAN to delete the branch\n- über port 3000\n"
COMMITTED = "**Remaining**\n- 12 tests passed\n- über port 3000\n"
CODEX_ASK = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary."
CRUSH_SYSTEM = "You are summarizing a conversation to preserve context for continuing work later.\n\n**Critical**"
CONTINUE_ASK = "Create a comprehensive summary of this conversation that captures all essential information needed to continue the work."


class World:
    """A proxy between a caller and an upstream, both in this process."""

    def __init__(self, client: SyncWinnowClient, asked: list, transport: MemoryTransport) -> None:
        self.asked, self.transport, self.winnow = asked, transport, client
        self.bridges: dict[str, Bridge] = {}
        self.requests: list[httpx.Request] = []
        self.bodies: list[bytes] = []
        self.status, self.headers, self.parts = 200, [(b"content-type", b"application/json")], [b"{}"]
        self.proxy = Proxy(
            "https://up.example",
            self.bridge,
            client=httpx.AsyncClient(transport=httpx.MockTransport(self.upstream)),
        )

    def bridge(self, host: str) -> Bridge:
        return self.bridges.setdefault(host, Bridge(self.winnow, host=host, mode=Mode.ENFORCE))

    async def upstream(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        self.bodies.append(await request.aread())

        async def stream():
            for part in self.parts:
                yield part

        return httpx.Response(self.status, headers=self.headers, content=stream())

    async def call(self, body: bytes | object = b"", *, method="POST", path=b"/v1/responses", query=b"", headers=()):
        """Status, headers and body parts that the caller gets."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        scope = {
            "type": "http",
            "method": method,
            "path": path.decode("latin-1"),
            "raw_path": path,
            "query_string": query,
            "headers": list(headers),
        }
        chunks = [{"type": "http.request", "body": data[:10], "more_body": True}, {"type": "http.request", "body": data[10:]}]
        sent: list[dict] = []

        async def receive():
            if chunks:
                return chunks.pop(0)
            return await asyncio.Event().wait()

        async def send(message):
            sent.append(message)

        await self.proxy(scope, receive, send)
        return sent[0]["status"], sent[0]["headers"], [m["body"] for m in sent[1:] if m["body"]]

    def bypasses(self) -> list[str]:
        assert self.winnow.drain(10)
        return [r.because for r in self.transport.reports if isinstance(r, RuntimeEvent) and r.kind is RuntimeEventKind.BYPASSED]


@pytest.fixture
def world():
    asked = []

    def answers(candidate, request_sha256):
        asked.append(candidate)
        spans, at = [], 0
        for line in candidate.candidate.splitlines(keepends=True):
            size = len(line.encode())
            spans += [(at, at + size)] if "PLAN" in line else []
            at += size
        return pruned(candidate, request_sha256, *spans)

    transport = MemoryTransport(answers)
    with SyncWinnowClient(transport, deadline_s=2.0) as client:
        yield World(client, asked, transport)


def stream(*events: object) -> bytes:
    return b"".join(b"event: x\ndata: " + (e if isinstance(e, bytes) else json.dumps(e).encode()) + b"\n\n" for e in events)


def texts(body: bytes, *path: object) -> str:
    """The texts at a path of all events that have one, joined."""
    found = ""
    for event in sse.blocks(body):
        value = event.data
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                value = None
        found += value if isinstance(value, str) else ""
    return found


PIECES = [SUMMARY[:20], SUMMARY[20:41], SUMMARY[41:]]
ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SUMMARY}]}
CODEX = {
    "model": "gpt-9", "prompt_cache_key": "thread-1", "stream": True,
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Make the suite green"}]},
        {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "12 passed"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": CODEX_ASK}]},
    ],
}  # fmt: skip
CODEX_STREAM = stream(
    {"type": "response.created", "response": {"id": "r"}},
    *({"type": "response.output_text.delta", "delta": piece} for piece in PIECES),
    {"type": "response.output_text.done", "text": SUMMARY},
    {"type": "response.output_item.done", "item": ITEM},
    {"type": "response.completed", "response": {"id": "r", "output": [ITEM], "usage": {"output_tokens": 9}}},
)
TOOL_CALL = stream({"type": "response.output_item.done", "item": {"type": "function_call"}}, {"type": "response.completed"})
NO_ASK = json.dumps(CODEX | {"input": CODEX["input"][:-1]}).encode()
TURNS = [
    {"role": "user", "content": "Make the suite green"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "shell", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "12 passed"},
]
CHAT = {
    "model": "m",
    "messages": [{"role": "system", "content": CRUSH_SYSTEM}, *TURNS, {"role": "user", "content": "Provide a detailed summary"}],
}
CHAT_STREAM = stream(
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    *({"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in PIECES),
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    b"[DONE]",
)
MESSAGES = {
    "model": "m", "system": [{"type": "text", "text": "You are an agent."}],
    "messages": [
        {"role": "user", "content": "Make the suite green"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "shell", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "12 passed"}]},
        {"role": "user", "content": CONTINUE_ASK},
    ],
}  # fmt: skip
MESSAGES_STREAM = stream(
    {"type": "message_start", "message": {"id": "x"}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}} for piece in PIECES),
    {"type": "content_block_stop", "index": 0},
)
SEEN = [("user", "Make the suite green"), ("action", "[tool call] shell: {}"), ("environment", "12 passed")]

CASES = [
    ("codex", b"/v1/responses", CODEX, CODEX_STREAM, ("delta",)),
    ("crush", b"/v1/chat/completions", CHAT, CHAT_STREAM, ("choices", 0, "delta", "content")),
    ("continue", b"/v1/messages", MESSAGES, MESSAGES_STREAM, ("delta", "text")),
]


@pytest.mark.parametrize(("host", "path", "request_", "answer", "where"), CASES)
async def test_a_streamed_compaction_comes_back_pruned(world, host, path, request_, answer, where):
    """The deltas together are the committed text; events that say nothing of it keep their bytes; Winnow saw what the model saw."""
    world.parts = [answer[:100], answer[100:]]
    status, _, body = await world.call(request_, path=path)
    made = b"".join(body)
    assert (status, texts(made, *where)) == (200, COMMITTED)
    assert b"PLAN" not in made
    assert sse.blocks(made)[0].raw == sse.blocks(answer)[0].raw
    assert sse.blocks(made)[-1].data is None or "PLAN" not in json.dumps(sse.blocks(made)[-1].data)
    [asked] = world.asked
    assert (asked.host, asked.candidate, asked.compressor) == (host, SUMMARY, request_["model"])
    assert [(m.kind.value, m.text) for m in asked.history] == SEEN
    assert asked.history[2].tool == "shell"


@pytest.mark.parametrize(
    ("path", "request_", "answer", "where"),
    [
        (b"/v1/responses", CODEX, {"id": "r", "output": [ITEM]}, ("output", 0, "content", 0, "text")),
        (b"/v1/chat/completions", CHAT, {"choices": [{"index": 0, "message": {"content": SUMMARY}}]}, ("choices", 0, "message", "content")),
        (b"/v1/messages", MESSAGES, {"content": [{"type": "text", "text": SUMMARY}]}, ("content", 0, "text")),
    ],
)
async def test_a_compaction_in_one_piece_comes_back_pruned(world, path, request_, answer, where):
    """The same without streaming, with the length that fits."""
    world.parts = [json.dumps(answer).encode()]
    world.headers = [(b"content-length", str(len(world.parts[0])).encode())]
    _, headers, [body] = await world.call(request_, path=path)
    value = json.loads(body)
    for step in where:
        value = value[step]
    assert (value, dict(headers)[b"content-length"]) == (COMMITTED, str(len(body)).encode())


async def test_codex_carries_its_summary_behind_a_prefix(world):
    """The previous summary is what stands behind Codex's prefix, and is not told as the user's words; the thread is the run."""
    world.parts = [CODEX_STREAM]
    await world.call(CODEX)
    carried = f"Another language model started to solve this problem and produced a summary of it:\n{COMMITTED}"
    again = CODEX | {"input": [{"type": "message", "role": "user", "content": carried}, *CODEX["input"]]}
    await world.call(again)
    first, second = world.asked
    assert (first.run, second.run, second.index) == ("thread-1", "thread-1", 2)
    assert (second.previous_summary, second.previous_boundary_id) == (COMMITTED, first.boundary_id)
    assert [(m.kind.value, m.text) for m in second.history] == SEEN


async def test_crush_carries_its_summary_unmarked_and_continue_behind_a_label(world):
    """What was handed over last is the previous summary where a user message says just that; a label of the host is not part of it."""
    world.parts = [CHAT_STREAM]
    headers = [(b"x-session-id", b"s")]
    await world.call(CHAT, path=b"/v1/chat/completions", headers=headers)
    again = CHAT | {"messages": [CHAT["messages"][0], {"role": "user", "content": COMMITTED}, *CHAT["messages"][1:]]}
    again["messages"][0] = {"role": "system", "content": f"A line of the host.\n{CRUSH_SYSTEM}"}
    await world.call(again, path=b"/v1/chat/completions", headers=headers)
    first, second = world.asked
    assert (second.run, second.previous_summary, second.previous_boundary_id) == ("s", COMMITTED, first.boundary_id)
    assert [(m.kind.value, m.text) for m in second.history] == SEEN

    world.parts = [MESSAGES_STREAM]
    label = {"role": "user", "content": f"Previous conversation summary:\n\n{COMMITTED}"}
    await world.call(MESSAGES | {"messages": [label, *MESSAGES["messages"]]}, path=b"/v1/messages")
    assert world.asked[2].previous_summary == COMMITTED
    assert [(m.kind.value, m.text) for m in world.asked[2].history] == SEEN


async def test_gemini_clis_second_answer_comes_back_pruned(world):
    """Its first answer and the snapshot before are no turns; the snapshot before is the previous summary."""
    lines = ["<state_snapshot>", "    <key_knowledge>", "        - 12 tests passed", "        - PLAN to delete", "    </key_knowledge>"]
    snapshot = "\n".join([*lines, "</state_snapshot>"])
    before = "<state_snapshot>\n</state_snapshot>"
    thought = {"text": "let me see", "thought": True}
    world.parts = [json.dumps({"candidates": [{"content": {"role": "model", "parts": [thought, {"text": snapshot}]}}]}).encode()]
    contents = [
        {"role": "user", "parts": [{"text": before}]},
        {"role": "model", "parts": [{"functionCall": {"name": "shell", "args": {"c": "t"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "shell", "response": {"output": "12 passed"}}}]},
        {"role": "model", "parts": [{"text": "a first snapshot"}]},
        {"role": "user", "parts": [{"text": "Critically evaluate the <state_snapshot> you just generated. Did you omit any?"}]},
    ]
    _, _, [body] = await world.call({"contents": contents}, path=b"/v1beta/models/gemini-x:generateContent")
    parts = json.loads(body)["candidates"][0]["content"]["parts"]
    assert parts == [thought, {"text": snapshot.replace("        - PLAN to delete\n", "")}]
    [asked] = world.asked
    assert (asked.host, asked.previous_summary) == ("gemini-cli", before)
    assert [(m.kind.value, m.text) for m in asked.history] == [("action", '[tool call] shell: {"c": "t"}'), ("environment", "12 passed")]


async def test_what_is_judged_is_never_compressed_and_winnows_header_stays_here(world):
    """A compaction is asked for without compression; keys go to the upstream, and to no log."""
    world.parts = [CODEX_STREAM]
    headers = [
        (b"authorization", b"Bearer sk-secret"),
        (b"accept-encoding", b"gzip, br"),
        (b"x-winnow-run", b"mine"),
        (b"connection", b"close"),
    ]
    await world.call(CODEX, headers=headers)
    [request] = world.requests
    assert world.asked[0].run == "mine"
    assert request.headers["authorization"] == "Bearer sk-secret"
    assert (request.headers["accept-encoding"], request.headers["host"]) == ("identity", "up.example")
    assert not {"x-winnow-run", "connection"} & set(request.headers)


async def test_an_outage_gives_the_upstreams_bytes(world, caplog):
    """With Winnow away the host gets what the model wrote, to the byte; nothing of it, and no key, is logged."""
    world.transport.outage = Retryable()
    world.parts = [CODEX_STREAM]
    _, _, body = await world.call(CODEX, headers=[(b"authorization", b"Bearer sk-secret")])
    assert b"".join(body) == CODEX_STREAM
    assert "sk-secret" not in caplog.text
    assert "PLAN" not in caplog.text


@pytest.mark.parametrize(
    ("parts", "headers", "because"),
    [
        (
            [stream({"type": "response.output_item.done", "item": {"type": "function_call"}}, {"type": "response.completed"})],
            [],
            "no_summary_in_answer",
        ),
        ([gzip.compress(CODEX_STREAM)], [(b"content-encoding", b"gzip")], "no_summary_in_answer"),
        ([b"not json"], [], "adapter_failed"),
        ([b'{"output": 7}'], [], "no_summary_in_answer"),
        ([b"x" * (app.ANSWER_BYTES + 1), b"y"], [], "answer_too_large"),
    ],
)
async def test_an_answer_that_is_no_summary_passes_and_is_reported(world, parts, headers, because):
    """A tool call, a compressed body, another form, too much of it: the bytes of the upstream, and a bypass with the reason."""
    world.parts, world.headers = parts, headers
    _, _, body = await world.call(CODEX)
    assert b"".join(body) == b"".join(parts)
    assert world.bypasses() == [because]
    assert not world.asked


async def test_an_error_of_the_upstream_passes(world):
    """A refusal of the model's provider is the host's to handle."""
    world.status, world.parts = 429, [b'{"error": "slow down"}']
    status, _, body = await world.call(CODEX)
    assert (status, b"".join(body), world.asked) == (429, world.parts[0], [])


async def test_a_summary_that_would_be_empty_is_left(world):
    """A host takes an empty answer for a failure: then the candidate passes, and that is reported."""
    world.parts = [json.dumps({"output": [{"type": "message", "content": [{"type": "output_text", "text": "- PLAN\n"}]}]}).encode()]
    _, _, body = await world.call(CODEX)
    assert (b"".join(body), world.bypasses()) == (world.parts[0], ["empty_summary"])


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.binary(max_size=60) | st.sampled_from([b"{}", b'{"input": 7}', b'{"messages": [[]]}', NO_ASK]),
    parts=st.lists(st.binary(min_size=1, max_size=20), max_size=4),
    path=st.sampled_from([b"/v1/responses", b"/v1/messages", b"/v1/chat/completions", b"/v1/models/%2F", b"/"]),
    query=st.sampled_from([b"", b"a=%20&b=c"]),
    value=st.text("abc ;=/", max_size=8).map(str.encode),
    status=st.sampled_from([200, 201, 404, 500]),
)
async def test_everything_else_passes_byte_for_byte(world, body, parts, path, query, value, status):
    """Method, path, query, headers and body go up as they came; status, headers and body parts come down as they are."""
    world.requests.clear()
    world.bodies.clear()
    world.parts, world.status, world.headers = parts, status, [(b"x-a", value), (b"x-a", b"2"), (b"content-encoding", b"br")]
    got, headers, received = await world.call(body, path=path, query=query, headers=[(b"x-b", value), (b"x-b", b"3")])
    assert (got, received) == (status, parts)
    assert [(n, v) for n, v in headers if n != b"transfer-encoding"] == world.headers
    [request] = world.requests
    assert world.bodies == [body]
    assert request.url.raw_path == path + (b"?" + query if query else b"")
    assert [v for n, v in request.headers.raw if n == b"x-b"] == [value, b"3"]
    assert not world.asked


async def test_an_answer_is_streamed_as_it_comes(world):
    """Each part is given to the caller before the upstream has the next one."""
    order = []

    async def parts():
        for i in range(3):
            order.append(("up", i))
            yield str(i).encode()

    world.proxy._client = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: httpx.Response(200, content=parts())))
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
    messages = [{"type": "http.request", "body": b""}]

    async def receive():
        if messages:
            return messages.pop()
        return await asyncio.Event().wait()

    async def send(message):
        if message.get("body"):
            order.append(("down", int(message["body"])))

    await world.proxy(scope, receive, send)
    assert order == [(way, i) for i in range(3) for way in ("up", "down")]


async def test_who_hangs_up_is_no_longer_served(world):
    """The upstream's stream is closed when the caller has gone."""
    closed = asyncio.Event()

    async def endless():
        try:
            yield b"1"
            await asyncio.Event().wait()
        finally:
            closed.set()

    world.proxy._client = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: httpx.Response(200, content=endless())))
    begun = asyncio.Event()
    messages = [{"type": "http.request", "body": b""}]

    async def receive():
        if messages:
            return messages.pop()
        await begun.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if message.get("body"):
            begun.set()

    await asyncio.wait_for(
        world.proxy({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}, receive, send), 10
    )
    await asyncio.wait_for(closed.wait(), 10)


async def test_an_upstream_that_is_away_is_a_bad_gateway(world):
    """The caller is told in words, as its API tells errors."""

    def refuse(request):
        raise httpx.ConnectError("no")

    world.proxy._client = httpx.AsyncClient(transport=httpx.MockTransport(refuse))
    status, _, [body] = await world.call(CODEX)
    assert status == 502
    assert "cannot be reached" in json.loads(body)["error"]["message"]


async def test_a_request_above_the_limit_passes_unread(world, monkeypatch):
    """What is too large to be looked at goes up as it comes."""
    monkeypatch.setattr(app, "REQUEST_BYTES", 5)
    world.parts = [CODEX_STREAM]
    _, _, body = await world.call(CODEX)
    assert (b"".join(body), world.bodies, world.asked) == (CODEX_STREAM, [json.dumps(CODEX).encode()], [])


@given(st.binary(max_size=60), st.sampled_from([b"\n\n", b"\r\n\r\n", b"data: {}\n\n", b'data:{"a":\ndata: 1}\n\n', b"data: [\n\n"]))
def test_the_events_of_a_stream_join_to_its_bytes(head, tail):
    """Whatever a stream holds, nothing of it is lost, and what is not changed keeps its bytes."""
    body = head + tail * 3 + head
    assert b"".join(event.raw for event in sse.blocks(body)) == body
    assert sse.rewritten(sse.blocks(body), lambda data: data) == body


def test_an_upstream_that_is_no_url_is_refused():
    """A word on what is wanted, at once."""
    with pytest.raises(ValueError, match="base URL"):
        Proxy("api.openai.com", lambda host: None)
