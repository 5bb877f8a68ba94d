"""The stages of the pipeline without a bus: records go from handler to handler, through a real database."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from opentelemetry.context import Context

from services.judge.handlers import JudgeHandler
from services.pruner.handlers import PrunerHandler
from services.retriever.handlers import RetrieverHandler
from winnow.contracts.deadline import Deadline
from winnow.contracts.envelope import decode
from winnow.contracts.events import Candidate, Committed, Event, JudgeId, Message, Score
from winnow.contracts.vocabulary import MessageKind, Mode, Outcome, ProvenanceClass, Reason, Verdict
from winnow.judging.port import Capabilities, Judge, JudgeAnswer, JudgeRequest
from winnow.messaging.records import Dead, Handled, Outgoing, Received, Record
from winnow.storage.database import Database
from winnow.storage.fleets import Point
from winnow.telemetry import Telemetry

DEFAULT_POINT = Point(mode=Mode.ENFORCE)


class ScriptedJudge:
    """A judge whose scores a test writes: by a word that the entry holds, else `default`."""

    def __init__(self, scores: Mapping[str, float | None] | None = None, *, default: float | None = 0.9, remote: bool = False) -> None:
        self.scores = dict(scores or {})
        self.default = default
        self.id = JudgeId(name="scripted", version="1")
        self.capabilities = Capabilities(remote=remote, deterministic=True, refutes=False, reads_texts=remote)
        self.asked = 0
        self.fails = False

    async def judge(self, request: JudgeRequest, deadline: Deadline) -> JudgeAnswer:
        """Answer from the script."""
        self.asked += 1
        if self.fails:
            return JudgeAnswer(judge=self.id, outcome=Outcome.UNJUDGED, reason=Reason.JUDGE_FAILED, scores=(), calls=())
        scores = [self._score(e.n, e.text) for e in request.evidence.entries]
        partial = any(s.score is None for s in scores)
        return JudgeAnswer(
            judge=self.id,
            outcome=Outcome.JUDGED_PARTIAL if partial else Outcome.JUDGED,
            reason=Reason.UNSCORED_ENTRIES if partial else None,
            scores=tuple(scores),
            calls=(),
        )

    def _score(self, n: int, text: str) -> Score:
        value = next((v for word, v in self.scores.items() if word in text), self.default)
        verdict = Verdict.UNSCORED if value is None else Verdict.SOURCED if value >= 0.5 else Verdict.UNSOURCED
        return Score(n=n, p=value, score=value, verdict=verdict, provenance=ProvenanceClass.NOWHERE, explanation="scripted")


@dataclass
class Stages:
    """Retriever, judge and pruner over one database."""

    database: Database
    judge: Judge = field(default_factory=ScriptedJudge)
    point: Point = DEFAULT_POINT
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    canary_share: float = 0.0
    dead: list[Dead] = field(default_factory=list)
    _offsets: Any = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.telemetry = telemetry = Telemetry.plain("test")
        self.retriever = RetrieverHandler(self.database, default_point=self.point, clock=self.now, canary_share=self.canary_share)
        self.with_judges({"local": self.judge, self.judge.id.name: self.judge})
        self.pruner = PrunerHandler(self.database, clock=self.now, monitor_stale_after=timedelta(seconds=60), telemetry=telemetry)

    def with_judges(self, judges: Mapping[str, Judge], *, fallback: str = "local") -> Self:
        """Judge with these instead."""
        self.judging = JudgeHandler(self.database, judges, fallback=fallback, clock=self.now, telemetry=self.telemetry)
        return self

    def received(self, topic: str, model: type[Event], key: str, body: bytes) -> Received[Any]:
        """A record as the bus would hand it over."""
        record = Record(
            topic=topic, partition=0, offset=next(self._offsets), key=key.encode(), headers=(), value=body,
            timestamp=int(self.now().timestamp() * 1000),
        )  # fmt: skip
        return Received(event=decode(model, body), record=record, context=Context())

    async def retrieve(self, *candidates: Candidate) -> Handled:
        """One batch through the retriever."""
        batch = [self.received("candidate", Candidate, c.key, c.model_dump_json().encode()) for c in candidates]
        return self._keep(await self.retriever.handle(batch))

    async def step(self, handler: Any, outgoing: Sequence[Outgoing]) -> Handled:
        """What one stage published, as one batch of the next."""
        batch = [self.received(o.topic.name, handler.model, o.key, o.body) for o in outgoing if o.topic is handler.topic]
        return self._keep(await handler.handle(batch)) if batch else Handled()

    async def run(self, *candidates: Candidate) -> list[Committed]:
        """A batch through all stages; what was published on the committed topic, rejections included."""
        first = await self.retrieve(*candidates)
        scores = await self.step(self.judging, first.outgoing)
        last = await self.step(self.pruner, scores.outgoing)
        return [decode(Committed, o.body) for o in (*first.outgoing, *last.outgoing) if o.topic.event is Committed]

    async def one(self, candidate: Candidate) -> Committed:
        """One boundary through all stages."""
        (committed,) = await self.run(candidate)
        return committed

    def _keep(self, handled: Handled) -> Handled:
        self.dead.extend(handled.dead)
        return handled


def output(i: int, text: str, tool: str = "shell", **more: Any) -> Message:
    """An environment output."""
    return Message(i=i, kind=MessageKind.ENVIRONMENT, text=text, tool=tool, **more)


def candidate(text: str, *, run: str = "run-1", index: int = 1, fleet: str = "acme", mode: Mode = Mode.ENFORCE, **more: Any) -> Candidate:
    """A candidate with an OpenClaw summary unless told otherwise."""
    defaults: dict[str, Any] = {
        "host": "openclaw",
        "task": "Book a flight for the user.",
        "history": (
            Message(i=0, kind=MessageKind.ACTION, text="[tool call] search: {}"),
            output(1, "flight HAT136 costs $152, seat 14C free"),
        ),
        "retained": (Message(i=2, kind=MessageKind.ACTION, text="[tool call] book: {}"), output(3, "booked: reservation QX7PLM")),
    }
    return Candidate(fleet=fleet, run=run, index=index, candidate=text, mode=mode, **(defaults | more))
