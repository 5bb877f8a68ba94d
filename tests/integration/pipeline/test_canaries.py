"""Entries with known answers on their way: planted, judged, observed; never rendered and never stored as entries."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text as sql

from services.drift_monitor.handlers import ObservationHandler
from services.drift_monitor.telling import Teller
from services.pruner.canaries import observations
from tests.harness.judge_server import JudgeServer
from tests.harness.pipeline import ScriptedJudge, Stages, candidate, output
from tests.unit.judging.adapters.asking import settings, spec, transport
from winnow.contracts import ids
from winnow.contracts.envelope import decode
from winnow.contracts.errors import TooLarge
from winnow.contracts.events import CanaryScore, Candidate, Committed, Evidence, JudgeId, Observation, Score, Scores
from winnow.contracts.topics import OBSERVATION
from winnow.contracts.vocabulary import AlertKind, CanaryKind, LabelFree, Outcome, ProvenanceClass, Rules, Verdict
from winnow.judging.adapters import registry
from winnow.judging.canaries import draw
from winnow.messaging.records import Handled
from winnow.storage import erase, fleets, raw, stages
from winnow.storage.database import Database
from winnow.storage.keys import Key, Stage
from winnow.storage.policy import Policy
from winnow.storage.values import decompress

SHARE = 0.5
DONORS = "## Decisions\n- Order ZX81QA ships from Utrecht on 2031-04-17\n- Invoice INV-99417 is paid\n"
TEXT = "## Decisions\n- Flight HAT136 costs $152\n- Surely the aisle seat is preferred\n"
HISTORY = (output(1, "flight: HAT136\nprice: 152.77\nseat: 14C\n"),)


def scripted(scores: dict[str, float | None] | None = None) -> ScriptedJudge:
    """A judge that answers by the name that fleets have by default, so that nobody takes it for a fallback."""
    judge = ScriptedJudge(scores)
    judge.id = judge.id.model_copy(update={"name": "local"})
    return judge


def fresh() -> str:
    return f"fleet-{uuid.uuid4().hex[:8]}"


def picked(fleet: str, *, planted: bool = True, counts: bool = True) -> uuid.UUID:
    """A boundary id that chance treats so."""
    while True:
        found = uuid.uuid4()
        chance = draw(fleet, found, SHARE)
        if chance.planted is planted and chance.counts is counts:
            return found


def asked(fleet: str, *, run: str = "run-2", index: int = 1, boundary_id: uuid.UUID | None = None, **more: Any) -> Candidate:
    """A boundary of another run than the donors'."""
    given = {"history": HISTORY, "boundary_id": boundary_id or picked(fleet), **more}
    return candidate(TEXT, fleet=fleet, run=run, index=index, **given)


async def with_donors(store: Database, judge: ScriptedJudge, fleet: str) -> Stages:
    """Stages whose fleet has one run with entries that may be donors."""
    made = Stages(store, judge, canary_share=SHARE)
    history = (output(1, "order ZX81QA ships from Utrecht on 2031-04-17"), output(2, "invoice INV-99417 is paid"))
    await made.one(candidate(DONORS, fleet=fleet, run="run-1", history=history, boundary_id=picked(fleet, planted=False)))
    return made


def seen(handled: Handled) -> list[Observation]:
    return [decode(Observation, o.body) for o in handled.outgoing if o.topic is OBSERVATION]


async def walk(stages_: Stages, *candidates: Candidate) -> tuple[list[Evidence], list[Scores], list[Committed], list[Observation]]:
    """A batch through all stages, with what each published."""
    first = await stages_.retrieve(*candidates)
    second = await stages_.step(stages_.judging, first.outgoing)
    third = await stages_.step(stages_.pruner, second.outgoing)
    return (
        [decode(Evidence, o.body) for o in first.outgoing],
        [decode(Scores, o.body) for o in second.outgoing],
        [decode(Committed, o.body) for o in third.outgoing if o.topic.event is Committed],
        seen(third),
    )


async def test_canaries_are_judged_observed_and_never_rendered(store: Database) -> None:
    """A donor's entry and a line of an output are judged with the others; summary, decisions and tables know nothing of them."""
    fleet = fresh()
    await with_donors(store, scripted(), fleet)
    made = Stages(store, scripted({"aisle": 0.1, "ZX81QA": 0.2, "INV-99417": 0.2}), canary_share=SHARE)
    (evidence,), (scores,), (committed,), observed = await walk(made, asked(fleet))
    assert {c.kind for c in evidence.canaries} == {CanaryKind.DONOR, CanaryKind.OUTPUT}
    assert [c.score.n for c in scores.canaries] == [3, 4]
    assert [s.n for s in scores.scores] == [1, 2]
    assert [d.n for d in committed.decisions] == [1, 2]
    assert committed.summary is not None
    assert committed.summary.text == "## Decisions\n- Flight HAT136 costs $152\n"
    assert {(o.stream, o.unit, o.graded and o.graded.loss) for o in observed} == {
        (LabelFree.CANARY_KEPT, "run-2", 0.0), (LabelFree.CANARY_DROPPED, "run-2", 0.0),
    }  # fmt: skip
    async with store.transaction() as tx:
        for table in ("entries", "scores", "decisions"):
            found = await tx.execute(sql(f"SELECT count(*) FROM {table} WHERE fleet = :fleet AND n > 2"), {"fleet": fleet})  # noqa: S608
            assert found.scalar_one() == 0


async def test_a_redelivery_observes_the_same_again(store: Database) -> None:
    """Published again, the observations have the same ids and bodies, so the monitor stores them once."""
    fleet = fresh()
    made = await with_donors(store, scripted(), fleet)
    boundary = asked(fleet)
    first, second = await walk(made, boundary), await walk(made, boundary)
    assert first[3] == second[3] != []
    assert first[0] == second[0]


async def test_one_observation_a_run(store: Database) -> None:
    """Every boundary of a run that counts gives the same observation id; a boundary that the coin leaves out gives none."""
    fleet = fresh()
    made = await with_donors(store, scripted(), fleet)
    *_, observed = await walk(made, asked(fleet, index=1), asked(fleet, index=2))
    assert len(observed) == 4
    assert {o.event_id for o in observed} == {ids.canary_id(fleet, s, "run-2") for s in (LabelFree.CANARY_KEPT, LabelFree.CANARY_DROPPED)}
    (evidence,), *_, none = await walk(made, asked(fleet, index=3, boundary_id=picked(fleet, counts=False)))
    assert (len(evidence.canaries), none) == (2, [])


@pytest.mark.parametrize(
    ("given", "share"),
    [({"rules": Rules.PUBLISHED}, SHARE), ({"boundary_id": "unpicked"}, SHARE), ({}, 0.0)],
    ids=["published", "unpicked", "share-0"],
)
async def test_where_none_is_planted(store: Database, given: dict[str, Any], share: float) -> None:
    """Not under published rules, not where chance does not pick, and not at all by default."""
    fleet = fresh()
    await with_donors(store, scripted(), fleet)
    if "boundary_id" in given:
        given = {"boundary_id": picked(fleet, planted=False)}
    (evidence,), (scores,), _, observed = await walk(Stages(store, canary_share=share), asked(fleet, **given))
    assert (evidence.canaries, scores.canaries, observed) == ((), (), [])


async def test_donors_are_of_the_same_fleet_and_another_run(store: Database) -> None:
    """No entry of another fleet, and none of the run itself, is planted."""
    donors, fleet = fresh(), fresh()
    made = await with_donors(store, scripted(), donors)
    (stranger,), *_ = await walk(made, asked(fleet))
    assert CanaryKind.DONOR not in {c.kind for c in stranger.canaries}
    (own,), *_ = await walk(made, asked(donors, run="run-1", index=2))
    assert CanaryKind.DONOR not in {c.kind for c in own.canaries}


async def test_what_a_fallback_says_of_canaries_counts_for_nobody(store: Database) -> None:
    """Where the named judge gives no answer, its canaries say nothing of it."""
    fleet, broken = fresh(), ScriptedJudge(remote=True)
    broken.id, broken.fails = broken.id.model_copy(update={"name": "broken"}), True
    made = await with_donors(store, scripted(), fleet)
    made.with_judges({"local": scripted(), "broken": broken})
    async with store.transaction() as tx:
        await fleets.set_point(tx, fleet, fleets.Point(judge="broken"), by="test", because="test", now=datetime.now(UTC))
    _, (scores,), (committed,), observed = await walk(made, asked(fleet))
    assert (committed.outcome, committed.fallback_for, len(scores.canaries), observed) == (Outcome.JUDGED, "broken", 2, [])


async def test_an_unusable_answer_to_a_canary_costs_the_boundary_nothing(store: Database) -> None:
    """A boundary whose own entries are all scored is judged, whatever became of its canaries."""
    fleet = fresh()
    made = await with_donors(store, scripted(), fleet)
    made.with_judges(
        {"local": scripted({"ZX81QA": None, "INV-99417": None, "price": None, "flight:": None, "seat:": None, "booked": None})}
    )
    _, _, (committed,), observed = await walk(made, asked(fleet))
    assert (committed.outcome, committed.reason, observed) == (Outcome.JUDGED, None, [])


async def test_a_remote_judge_cannot_tell_canaries_from_entries(store: Database) -> None:
    """In the request they have ids and questions like all others, and nothing says which they are."""
    fleet = fresh()
    await with_donors(store, scripted(), fleet)
    async with JudgeServer(judges=lambda _id, text: 0.1 if "Utrecht" in text or "INV-" in text else 0.9) as server:
        judges = registry.build(settings(jev=spec(server)), transport=transport)
        made = Stages(store, scripted(), canary_share=SHARE).with_judges(judges.by_name)
        async with store.transaction() as tx:
            await fleets.set_point(tx, fleet, fleets.Point(judge="jev"), by="test", because="test", now=datetime.now(UTC))
        _, (scores,), (committed,), observed = await walk(made, asked(fleet))
        assert (committed.outcome, len(committed.decisions), len(observed)) == (Outcome.JUDGED, 2, 2)
        assert server.asked[0].names == ["b1", "b2", "b3", "b4"]
        assert b"canar" not in server.asked[0].raw
        assert b"donor" not in server.asked[0].raw
        assert {o.graded and o.graded.loss for o in observed} == {0.0}
        assert all("canar" not in c.score.explanation for c in scores.canaries)
        await judges.close()


def judged(fleet: str, run: int, p: dict[CanaryKind, float]) -> Scores:
    """What a judge says of the canaries of a run."""
    told = [
        CanaryScore(
            kind=kind, counts=True,
            score=Score(n=at, p=value, score=value, verdict=Verdict.SOURCED, provenance=ProvenanceClass.NOWHERE, explanation="x"),
        )
        for at, (kind, value) in enumerate(p.items(), 1)
    ]  # fmt: skip
    return Scores(
        fleet=fleet, run=f"run-{run}", boundary_id=uuid.UUID(int=run), request_sha256="0" * 64, candidate_sha256="0" * 64,
        operating_point=1, judge=JudgeId(name="j", version="1"), outcome=Outcome.JUDGED, canaries=tuple(told),
    )  # fmt: skip


async def alarmed(store: Database, made: Stages, events: Sequence[Scores]) -> list[str | None]:
    """Let the monitor see what became of these canaries; return the streams that alarmed."""
    tell = Teller(made.telemetry)
    handler = ObservationHandler(store, default_point=fleets.Point(), policy=Policy(), clock=lambda: datetime.now(UTC), tell=tell)
    at = datetime.now(UTC) - timedelta(minutes=5)
    found = [o for event in events for o in observations(event, tau=0.5, at=at)]
    await handler.handle([made.received("observation", Observation, o.key, o.model_dump_json().encode()) for o in found])
    async with store.transaction() as tx:
        rows = await tx.execute(
            sql("SELECT stream FROM alerts WHERE fleet = :fleet AND kind = :kind ORDER BY stream"),
            {"fleet": events[0].fleet, "kind": AlertKind.RAISED.value},
        )
        return [row.stream for row in rows]


@pytest.mark.parametrize(
    ("kept", "dropped", "streams"),
    [(0.9, 0.9, ["canary-kept"]), (0.1, 0.1, ["canary-dropped"]), (0.1, 0.9, [])],
    ids=["keeps-everything", "drops-everything", "works"],
)
async def test_a_broken_judge_raises_the_alarm(store: Database, kept: float, dropped: float, streams: list[str]) -> None:
    """A judge that says the same of everything is found out without a label; one that works is left in peace."""
    fleet = fresh()
    events = [judged(fleet, run, {CanaryKind.DONOR: kept, CanaryKind.OUTPUT: dropped}) for run in range(1, 61)]
    assert await alarmed(store, Stages(store), events) == streams


async def test_the_stored_answer_has_the_canaries(store: Database) -> None:
    """What a repetition publishes has the same canaries as the first time, though the fleet's donors have changed since."""
    fleet = fresh()
    made = await with_donors(store, scripted(), fleet)
    boundary = asked(fleet)
    (first,), *_ = await walk(made, boundary)
    async with store.transaction() as tx:
        stored = await stages.load_outputs(tx, [Key(fleet, boundary.boundary_id)], Stage.EVIDENCE)
    (only,) = stored.values()
    assert decode(Evidence, only.output.body) == first


@pytest.mark.parametrize("large", [False, True])
async def test_erasing_a_donors_run_reaches_the_answers_that_hold_its_text(
    store: Database, monkeypatch: pytest.MonkeyPatch, *, large: bool
) -> None:
    """An erased run's entry is in nothing that is stored of another run's boundary, nor in what a repetition of it publishes."""
    fleet = fresh()
    made = await with_donors(store, scripted(), fleet)
    if large:  # answers are originals of their own then
        monkeypatch.setattr("winnow.storage.outputs.encode", _too_large)
    boundary = asked(fleet)
    evidence = await made.retrieve(boundary)
    if not large:
        await made.step(made.judging, evidence.outgoing)
    before = await _stored_text(store, fleet)
    assert "ZX81QA" in before or "INV-99417" in before
    async with store.transaction() as tx:
        await erase.erase_run(tx, fleet, "run-1", by="test", now=datetime.now(UTC))
    after = await _stored_text(store, fleet)
    assert "ZX81QA" not in after
    assert "INV-99417" not in after
    assert "HAT136" in after
    again = await made.retrieve(boundary)
    assert len(again.outgoing) == 1
    if not large:
        assert decode(Evidence, again.outgoing[0].body).canaries == ()
    # Another one is not planted either: donors that are gone by the time of storing are left out.
    await made.retrieve(asked(fleet, run="run-3"))
    assert "ZX81QA" not in await _stored_text(store, fleet)


async def test_a_donor_that_is_erased_meanwhile_is_not_planted(store: Database) -> None:
    """Where a run is erased between the choice of its entry and the storing of the answer, the answer goes without."""
    fleet = fresh()
    made = await with_donors(store, scripted(), fleet)
    plant = made.retriever._planter.plant

    async def planted_then_erased(grounds: Any) -> Any:
        found = await plant(grounds)
        async with store.transaction() as tx:
            await erase.erase_run(tx, fleet, "run-1", by="test", now=datetime.now(UTC))
        return found

    made.retriever._planter.plant = planted_then_erased  # type: ignore[method-assign]  # the moment in between
    (evidence,) = (await made.retrieve(asked(fleet))).outgoing
    assert {c.kind for c in decode(Evidence, evidence.body).canaries} == {CanaryKind.OUTPUT}


async def test_a_fleet_that_goes_on_after_its_erasure_has_canaries_again(store: Database) -> None:
    """An erasure of some time ago says nothing of the entries that came after it: they are donors like any others."""
    fleet = fresh()
    async with store.transaction() as tx:
        await erase.erase_fleet(tx, fleet, by="test", now=datetime.now(UTC) - timedelta(hours=2))
    made = await with_donors(store, scripted(), fleet)
    (evidence,) = (await made.retrieve(asked(fleet))).outgoing
    assert {c.kind for c in decode(Evidence, evidence.body).canaries} == {CanaryKind.DONOR, CanaryKind.OUTPUT}


def _too_large(*_: object) -> bytes:
    raise TooLarge


async def _stored_text(store: Database, fleet: str) -> str:
    """All that is stored of a fleet's answers and originals."""
    async with store.transaction() as tx:
        rows = [*(await raw.fetch(tx, "SELECT body AS data, encoding FROM stage_outputs WHERE fleet = $1", fleet)),
                *(await raw.fetch(tx, "SELECT data, encoding FROM originals WHERE fleet = $1", fleet))]  # fmt: skip
    return "\n".join(decompress(row["data"], row["encoding"]).decode(errors="replace") for row in rows)
