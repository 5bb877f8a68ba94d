"""Boundaries for remote judges, and judges on a local server."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import httpx

from tests.harness.judge_server import Asked, JudgeServer
from winnow.contracts.deadline import Deadline
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import MessageKind, Rules
from winnow.judging.adapters import registry
from winnow.judging.adapters.endpoint import Surroundings
from winnow.judging.adapters.remote import RemoteJudge
from winnow.judging.adapters.specs import JudgesSettings
from winnow.judging.adapters.transport import HttpTransport, Reply, Transport
from winnow.judging.offline import request_of
from winnow.judging.port import Judge, JudgeAnswer, JudgeRequest

HISTORY = (
    Message(i=0, kind=MessageKind.ACTION, text="[tool call] search: {}"),
    Message(i=1, kind=MessageKind.ENVIRONMENT, tool="search", text="flight HAT136 costs $152, seat 14C free\nHAT210 costs $99"),
)
RETAINED = (
    Message(i=2, kind=MessageKind.ACTION, text="[tool call] book: {}"),
    Message(i=3, kind=MessageKind.ENVIRONMENT, tool="book", text="booked: reservation QX7PLM"),
)
ENTRIES = ("Flight HAT136 costs $152", "Surely the aisle seat is preferred", "Reservation QX7PLM is booked")


def request(
    *entries: str,
    history: Sequence[Message] = HISTORY,
    retained: Sequence[Message] = RETAINED,
    previous: str | None = None,
    task: str = "Book a flight for the user.",
    rules: Rules = Rules.WINNOW,
    **more: Any,
) -> JudgeRequest:
    """A boundary with these entries; `more` goes into its evidence."""
    text = "## Decisions\n" + "".join(f"- {entry}\n" for entry in entries or ENTRIES)
    _, found = request_of(text, task=task, previous=previous, history=history, retained=retained, host="openclaw", rules=rules)
    if not more:
        return found
    return JudgeRequest(evidence=found.evidence.model_copy(update=more), task=found.task, previous=found.previous, retained=found.retained)


@cache
def plain() -> JudgeRequest:
    """The boundary of most tests, examined once."""
    return request()


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def around(self, jitter: float = 0.0) -> Surroundings:
        return Surroundings(monotonic=self, now=lambda: datetime.fromtimestamp(self.now, UTC), jitter=lambda: jitter, sleep=self.sleep)


def transport() -> Transport:
    """A real one, past any proxy of the machine."""
    return HttpTransport(lambda: httpx.AsyncClient(timeout=None, trust_env=False, verify=False))  # noqa: S113, S501  deadlines end it; plain http


class Honest:
    """A transport that answers as an honest endpoint does, without one."""

    def __init__(self, judges: Any = 0.9) -> None:
        self._server = JudgeServer(judges=lambda _id, _text: judges)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
        answer = self._server.answer(Asked(path=url, headers=headers, raw=body))
        return Reply(status=200, headers={}, body=json.dumps(answer).encode())

    async def close(self) -> None:
        pass


def settings(**judges: Any) -> JudgesSettings:
    """Settings as the variables would give them."""
    return JudgesSettings.model_validate({"judges": judges})


def spec(server: JudgeServer | str, kind: str = "jev", **more: Any) -> dict[str, Any]:
    """A judge at `server`."""
    url = server if isinstance(server, str) else server.url
    own = {"jev": {}, "anthropic": {"model": "claude-x-1"}, "self": {"models": ["claude-x-1", "claude-y-1"]}}[kind]
    return {"kind": kind, "url": url, "api_key": "k-123", "allow_insecure_url": True, **own, **more}


def judge_at(
    server: JudgeServer | str, kind: str = "jev", *, time: Time | None = None, by: Transport | None = None, **more: Any
) -> RemoteJudge:
    """One judge at `server`; its clock moves by sleeping alone where `time` is given."""
    made = registry.build(settings(**{kind: spec(server, kind, **more)}), time.around() if time else None, lambda: by or transport())
    (judge,) = made.remote
    return judge


async def ask(judge: Judge, asked: JudgeRequest | None = None, *, left: float = 5.0, time: Time | None = None) -> JudgeAnswer:
    """Ask with `left` seconds, by the loop's clock or by `time`."""
    deadline = Deadline.after(left, time or asyncio.get_running_loop().time)
    answer = await judge.judge(asked or plain(), deadline)
    if isinstance(judge, RemoteJudge):
        await judge.close()
    return answer


def said(answer: JudgeAnswer) -> dict[int, float | None]:
    """Probability by entry."""
    return {score.n: score.p for score in answer.scores}


def errors(answer: JudgeAnswer) -> list[str | None]:
    """What the calls say of themselves."""
    return [call.error for call in answer.calls]
