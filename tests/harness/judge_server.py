"""A judge's endpoint on loopback that speaks both protocols, honestly unless a test scripts the next answers."""

import asyncio
import json
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

#: Seconds between the bytes of a dripping body.
DRIP_S = 0.01


@dataclass(frozen=True)
class Asked:
    """One request as the server got it."""

    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        """The JSON of it."""
        return json.loads(self.raw)

    @property
    def state(self) -> Any:
        """The state that a judge sees, whichever protocol."""
        if "questions" in self.body:
            state = self.body["state"]
            return json.loads(state) if isinstance(state, str) else state
        return json.loads(self.body["messages"][0]["content"])

    @property
    def names(self) -> list[str]:
        """The ids of the entries that are asked about."""
        if "questions" in self.body:
            return list(self.body["questions"])
        return list(self.body["tools"][0]["input_schema"]["properties"])


#: Answers one request. Returning ends the connection.
Act = Callable[["JudgeServer", Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class JudgeServer:
    """`async with JudgeServer() as server:`; `server.script` has the acts of the next requests, then `judges` answers honestly."""

    #: Probability of an entry, from its id and text.
    judges: Callable[[str, str], Any] = lambda _id, _text: 0.9
    script: deque[Act] = field(default_factory=deque)
    asked: list[Asked] = field(default_factory=list)
    model: str = "jev-1.13.0"
    #: Most requests that were open at the same time.
    most_open: int = 0

    async def __aenter__(self) -> Self:
        self.released = asyncio.Event()
        self._arrived = asyncio.Condition()
        self._open = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.released.set()
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1/systemone"

    def then(self, *acts: Act) -> Self:
        """Script the next requests."""
        self.script.extend(acts)
        return self

    async def until(self, count: int) -> None:
        """Wait for the first `count` requests."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.asked) >= count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
            raw = await reader.readexactly(int(headers.get("content-length", "0")))
            asked = Asked(path=head[0].split(" ")[1], headers=headers, raw=raw)
            self.asked.append(asked)
            self._open += 1
            self.most_open = max(self.most_open, self._open)
            async with self._arrived:
                self._arrived.notify_all()
            try:
                act = self.script.popleft() if self.script else honest
                await act(self, asked, writer)
            finally:
                self._open -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away, which is what some tests are about
        finally:
            writer.close()

    def answer(self, asked: Asked) -> dict[str, Any]:
        """The honest answer as JSON."""
        entries = asked.state["entries"]
        given = {name: self.judges(name, entries[name]) for name in asked.names}
        if "questions" in asked.body:
            answers = {name: {"type": "noul", "noul": p} for name, p in given.items() if p is not None}
            return {"model": self.model, "answers": answers, "usage": {"input_tokens": 1000, "output_tokens": 8}}
        call = {"type": "tool_use", "id": "t1", "name": "record_answers", "input": {k: v for k, v in given.items() if v is not None}}
        usage = {"input_tokens": 1000, "output_tokens": 50}
        return {"type": "message", "model": self.model, "content": [call], "stop_reason": "tool_use", "usage": usage}


def head(status: int, length: int, headers: Mapping[str, str] | None = None) -> bytes:
    """Status line and headers."""
    lines = [f"HTTP/1.1 {status} X", "content-type: application/json", f"content-length: {length}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def honest(server: JudgeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    """What `server.judges` says."""
    await raw(json.dumps(server.answer(asked)).encode())(server, asked, writer)


def raw(body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None, length: int | None = None) -> Act:
    """Exactly these bytes; `length` lies about them."""

    async def act(server: JudgeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head(status, len(body) if length is None else length, headers) + body)
        await writer.drain()

    return act


def status(code: int, headers: Mapping[str, str] | None = None, body: bytes = b'{"error":{"message":"no"}}') -> Act:
    """A refusal."""
    return raw(body, status=code, headers=headers)


def changed(change: Callable[[dict[str, Any]], Any]) -> Act:
    """The honest answer after `change`, which returns what is sent instead: JSON, or bytes as they are."""

    async def act(server: JudgeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
        body = change(server.answer(asked))
        await raw(body if isinstance(body, bytes) else json.dumps(body).encode())(server, asked, writer)

    return act


async def stalled(server: JudgeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    """No answer, until the server is closed."""
    await server.released.wait()


async def stalled_inside(server: JudgeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Half a body, then nothing."""
    body = json.dumps(server.answer(asked)).encode()
    writer.write(head(200, len(body)) + body[: len(body) // 2])
    await writer.drain()
    await server.released.wait()


async def dripping(server: JudgeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A body that comes byte by byte and would take longer than anybody waits."""
    writer.write(head(200, 1_000_000))
    while not server.released.is_set():
        writer.write(b" ")
        await writer.drain()
        try:
            await asyncio.wait_for(server.released.wait(), DRIP_S)
        except TimeoutError:
            continue


async def broken_off(server: JudgeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    """The connection ends inside the body."""
    body = json.dumps(server.answer(asked)).encode()
    writer.write(head(200, len(body)) + body[:10])
    await writer.drain()


async def endless(server: JudgeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    """More bytes than any answer has, without a word on how many."""
    writer.write(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{")
    while not server.released.is_set():
        writer.write(b" " * 65536)
        await writer.drain()


def together(count: int) -> Act:
    """The honest answer once `count` requests are open."""

    async def act(server: JudgeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
        async with server._arrived:
            await server._arrived.wait_for(lambda: server.most_open >= count)
        await honest(server, asked, writer)

    return act


@contextmanager
def in_a_thread(server: JudgeServer) -> Iterator[JudgeServer]:
    """Run `server` on a loop of its own, for callers that have none."""
    with asyncio.Runner() as runner:
        ready, stop = threading.Event(), asyncio.Event()

        async def serve() -> None:
            async with server:
                ready.set()
                await stop.wait()

        thread = threading.Thread(target=lambda: runner.run(serve()))
        loop = runner.get_loop()
        thread.start()
        try:
            assert ready.wait(30)
            yield server
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(30)
