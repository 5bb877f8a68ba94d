"""Events of a boundary's way, small and whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from winnow.contracts import ids
from winnow.contracts.events import (
    BoundaryRef,
    Candidate,
    Committed,
    Entry,
    EntryDecision,
    EntryEvidence,
    Evidence,
    Finding,
    JudgeId,
    Message,
    Passage,
    Score,
    Scores,
    Text,
    ValueOrigin,
    sha256,
)
from winnow.contracts.topics import COMMITTED, EVIDENCE, SCORES
from winnow.contracts.vocabulary import (
    Decision,
    DecisionReason,
    FindingKind,
    MessageKind,
    Mode,
    Outcome,
    ProvenanceClass,
    RootSource,
    Rules,
    SectionClass,
    Verdict,
)
from winnow.storage import boundaries, originals, stages
from winnow.storage.boundaries import Boundary, NewBoundary
from winnow.storage.database import Database
from winnow.storage.originals import Content, Kind, NewHandle

JUDGE = JudgeId(name="local", version="1")
#: What speaks against the second entry.
FINDING = Finding(
    kind=FindingKind.CONTRADICTED, claim="480", key="total", said="490", by=ProvenanceClass.ENVIRONMENT, message=0, tool="search", at=3
)


def candidate(
    fleet: str, *, run: str = "run-1", index: int = 1, texts: Sequence[str] = ("- ordered HAT136", "- will call tomorrow"), **more
) -> Candidate:
    more = {
        "task": f"the task of {run}",
        "history": (Message(i=0, kind=MessageKind.ENVIRONMENT, text=f"HAT136 is ordered, says {run}", tool="search"),),
        **more,
    }
    return Candidate(fleet=fleet, run=run, index=index, candidate="\n".join(texts), **more)


def new_boundary(event: Candidate, now: datetime) -> NewBoundary:
    return NewBoundary.of(event, received_at=now, history_sha256=sha256(event.inline_messages().content()))


def _ref(boundary: Boundary, point: int) -> dict[str, object]:
    return {
        "fleet": boundary.fleet,
        "run": boundary.run,
        "boundary_id": boundary.boundary_id,
        "request_sha256": boundary.request_sha256,
        "candidate_sha256": boundary.candidate_sha256,
        "operating_point": point,
    }


def _output(event: BoundaryRef, event_type: str) -> stages.Output:
    return stages.Output(
        event_type=event_type,
        record_key=event.key,
        event_id=ids.event_id(event.fleet, event.boundary_id, event_type),
        body=event.model_dump_json().encode(),
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    )


def evidence(
    boundary: Boundary, *, texts: Sequence[str] = ("- ordered HAT136", "- will call tomorrow"), point: int = 1, **more
) -> stages.EvidenceAnswer:
    event = Evidence(
        **_ref(boundary, point),
        agent=boundary.agent,
        index=boundary.boundary_index,
        boundary_at=boundary.boundary_at,
        mode=boundary.mode,
        rules=boundary.rules,
        profile="openclaw",
        user_turns_survive=True,
        task=Text.of("the task"),
        retained=Text.of("[]"),
        passages=(Passage(id=1, message=0, tool="search", start=0, end=6, text="HAT136 is ordered"),),
        entries=tuple(
            Entry(
                n=n,
                key=sha256(text)[:32],
                section="Decisions" if n == 1 else "Next",
                section_class=SectionClass.OBSERVATION if n == 1 else SectionClass.FORWARD,
                text=text,
                span=(n * 10, n * 10 + 9),
                evidence=(EntryEvidence(passage=1, rank=1, bm25=1.5),),
                provenance=ProvenanceClass.ENVIRONMENT if n == 1 else ProvenanceClass.NOWHERE,
                values=(ValueOrigin(value="HAT136", origin=ProvenanceClass.ENVIRONMENT, message=0, tool="search"),),
                sources=(ProvenanceClass.ENVIRONMENT,) if n == 1 else (),
                findings=() if n == 1 else (FINDING,),
                features={"coverage": 0.25 * n},
            )
            for n, text in enumerate(texts, 1)
        ),
        parser_version="1",
        features_version="1",
        messages_sha256=boundary.history_sha256,
        **more,
    )
    return stages.EvidenceAnswer(event=event, output=_output(event, EVIDENCE.event_type))


def scores(
    boundary: Boundary, *, count: int = 2, point: int = 1, explanation: str = "1 value first seen in output #0"
) -> stages.ScoresAnswer:
    event = Scores(
        **_ref(boundary, point),
        judge=JUDGE,
        outcome=Outcome.JUDGED,
        scores=tuple(
            Score(
                n=n,
                p=0.9 if n == 1 else 0.1,
                score=0.9 if n == 1 else 0.1,
                verdict=Verdict.SOURCED if n == 1 else Verdict.UNSOURCED,
                provenance=ProvenanceClass.ENVIRONMENT if n == 1 else ProvenanceClass.NOWHERE,
                explanation=explanation,
                passages=(1,) if n == 1 else (),
                flags=() if n == 1 else (FINDING.kind,),
            )
            for n in range(1, count + 1)
        ),
    )
    return stages.ScoresAnswer(event=event, output=_output(event, SCORES.event_type))


def committed(
    boundary: Boundary, summary: str, now: datetime, *, count: int = 2, point: int = 1, parent: UUID | None = None, **more
) -> stages.CommittedAnswer:
    event = Committed(
        **_ref(boundary, point),
        agent=boundary.agent,
        index=boundary.boundary_index,
        outcome=Outcome.JUDGED,
        mode=Mode.ENFORCE,
        rules=Rules.WINNOW,
        profile="openclaw",
        tau=0.5,
        judge=JUDGE,
        summary=Text.of(summary),
        committed_sha256=sha256(summary),
        pruned=max(0, count - 1),
        decisions=tuple(
            EntryDecision(
                n=n,
                section="Decisions",
                section_class=SectionClass.OBSERVATION,
                span=(n * 10, n * 10 + 9),
                decision=Decision.KEPT if n == 1 else Decision.PRUNED,
                reason=DecisionReason.SCORE,
                score=0.9 if n == 1 else 0.1,
                verdict=Verdict.SOURCED if n == 1 else Verdict.UNSOURCED,
                provenance=ProvenanceClass.ENVIRONMENT if n == 1 else ProvenanceClass.NOWHERE,
                root_source=RootSource.ENVIRONMENT if n == 1 else RootSource.NONE,
                explanation="1 value first seen in output #0" if n == 1 else "said nowhere",
            )
            for n in range(1, count + 1)
        ),
        parent_boundary_id=parent,
        committed_at=now,
        **more,
    )
    return stages.CommittedAnswer(event=event, output=_output(event, COMMITTED.event_type))


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A boundary that went all the way."""

    boundary: Boundary
    candidate: Candidate
    committed: str
    handles: dict[Kind, str]


async def stored(db: Database, event: Candidate, now: datetime) -> Boundary:
    """The boundary of a candidate, with its originals."""
    contents = [
        Content.of(event.fleet, event.inline_messages().content()),
        Content.of(event.fleet, event.task),
        Content.of(event.fleet, event.candidate),
    ]
    if event.previous_summary is not None:
        contents.append(Content.of(event.fleet, event.previous_summary))
    async with db.transaction() as tx:
        await originals.put(tx, contents)
        return (await boundaries.insert_new(tx, [new_boundary(event, now)]))[0].boundary


async def told(db: Database, event: Candidate, now: datetime, *, kept: str | None = None) -> Told:
    """A boundary through all stages: its first entry kept, the others pruned."""
    boundary = await stored(db, event, now)
    texts = event.candidate.split("\n")
    summary = texts[0] if kept is None else kept
    names = {Kind.CANDIDATE: originals.new_handle(), Kind.HISTORY: originals.new_handle()}
    async with db.transaction() as tx:
        await originals.put(tx, [Content.of(event.fleet, summary)])
        hashes = {Kind.CANDIDATE: boundary.candidate_sha256, Kind.HISTORY: boundary.history_sha256}
        await originals.put_handles(
            tx,
            [NewHandle(handle=h, fleet=event.fleet, sha256=hashes[k], kind=k, boundary_id=boundary.boundary_id) for k, h in names.items()],
        )
        await stages.store_evidence(tx, [evidence(boundary, texts=texts)], now=now)
        await stages.store_scores(tx, [scores(boundary, count=len(texts))], now=now)
        await stages.store_committed(tx, [committed(boundary, summary, now, count=len(texts))], now=now)
        boundary = (await boundaries.load(tx, [boundary.key]))[boundary.key]
    return Told(boundary=boundary, candidate=event, committed=summary, handles=names)
