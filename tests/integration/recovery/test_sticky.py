"""An entry that was asked back is kept for the rest of its run, in whatever order the pipeline and the recovery come."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from services.drift_monitor.handlers import Patience, RuntimeHandler
from services.drift_monitor.telling import Teller
from tests.harness.pipeline import candidate
from tests.integration.recovery.conftest import SUMMARY, House
from winnow.contracts.events import Committed, RuntimeEvent
from winnow.contracts.vocabulary import Decision, DecisionReason, Mode, RootSource, Rules, RuntimeEventKind
from winnow.storage import erase, originals, recovery
from winnow.storage.fleets import Point

RUNTIME = RuntimeHandler.topic
PATIENCE = Patience(idle=timedelta(hours=1), settle=timedelta(minutes=1))


def said(committed: Committed) -> dict[int, tuple[Decision, DecisionReason]]:
    return {d.n: (d.decision, d.reason) for d in committed.decisions}


GONE = (Decision.PRUNED, DecisionReason.SCORE)
BACK = (Decision.KEPT, DecisionReason.RECOVERED)


async def report(house: House, *events: RuntimeEvent) -> None:
    """Runtime events as the drift monitor gets them from the bus."""
    telemetry = house.stages.telemetry
    handler = RuntimeHandler(
        house.stage.db, default_point=Point(), patience=PATIENCE, clock=lambda: datetime.now(UTC), tell=Teller(telemetry)
    )
    batch = [house.stages.received(RUNTIME.name, RuntimeEvent, e.key, e.model_dump_json().encode()) for e in events]
    await handler.handle(batch)


def recovered(house: House, handle: str, *, run: str = "r", event_id: UUID | None = None) -> RuntimeEvent:
    name, _, part = handle.partition(".")
    return RuntimeEvent(
        fleet=house.fleet, event_id=event_id or uuid4(), run=run, kind=RuntimeEventKind.RECOVERED, at=datetime.now(UTC), handle=name,
        part=part or None, recovery_tool=True,
    )  # fmt: skip


async def test_between_two_boundaries(house):
    """Asked back after one boundary, the entry is kept at the next and at all later ones, with its reason, and its neighbours are not."""
    first = await house.compact()
    assert said(first) == {1: (Decision.KEPT, DecisionReason.SCORE), 2: GONE, 3: GONE}
    await house.ask((await house.pruned())[0]["handle"])
    for index in (2, 3):
        text = SUMMARY.replace("- rebook via Lisbon on Friday", "*  rebook  via LISBON on Friday")
        later = await house.compact(text, index=index, previous_summary=first.summary.text)
        assert said(later) == {1: (Decision.KEPT, DecisionReason.SCORE), 2: BACK, 3: GONE}
        (pinned,) = [d for d in later.decisions if d.n == 2]
        assert (pinned.pinned_by, pinned.root_source) == ("recovery", RootSource.NONE)
        assert "LISBON" in later.summary.text
    stored = await house.rows("SELECT reason, pinned_by FROM decisions WHERE fleet = $1 AND n = 2 ORDER BY boundary_at")
    assert [(r["reason"], r["pinned_by"]) for r in stored] == [("score", None), ("recovered", "recovery"), ("recovered", "recovery")]
    assert {e["index"] for e in await house.pruned()} == {1, 2, 3}
    other = await house.compact(run="another")
    assert said(other)[2] == GONE


@pytest.mark.parametrize("before", [True, False])
async def test_both_orders_with_a_boundary_under_way(house, before):
    """A recovery that commits while a boundary is under way counts for it; one that commits after its pruning counts for the next."""
    await house.compact()
    handle = (await house.pruned())[0]["handle"]
    under_way = candidate(SUMMARY, run="r", index=2, fleet=house.fleet)
    first = await house.stages.retrieve(under_way)
    scores = await house.stages.step(house.stages.judging, first.outgoing)
    if before:
        await house.ask(handle)
    pruned = await house.stages.step(house.stages.pruner, scores.outgoing)
    if not before:
        await house.ask(handle)
    second = Committed.model_validate_json(pruned.outgoing[0].body)
    assert said(second)[2] == (BACK if before else GONE)
    again = await house.stages.step(house.stages.pruner, scores.outgoing)
    assert again.outgoing[0].body == pruned.outgoing[0].body
    assert said(await house.compact(index=3))[2] == BACK


async def test_duplicates_and_both_ways(house):
    """The gateway's row and the event on the bus are one recovery in either order, however often each comes."""
    await house.compact()
    one, two = (e["handle"] for e in await house.pruned())
    first, second = uuid4(), uuid4()
    for _ in range(2):
        assert (await house.ask(one, event_id=str(first))).status_code == 200
        await report(house, recovered(house, one, event_id=first), recovered(house, one, event_id=first))
    for _ in range(2):
        await report(house, recovered(house, two, event_id=second))
        assert (await house.ask(two, event_id=str(second))).status_code == 200
    rows = await house.rows("SELECT part, via FROM recoveries WHERE fleet = $1 AND event_id IS NOT NULL ORDER BY id")
    assert [(r["part"], r["via"]) for r in rows] == [("e2", "gateway"), ("e3", "runtime")]
    events = await house.rows("SELECT part, recovery_tool FROM runtime_events WHERE fleet = $1 ORDER BY part")
    assert [(r["part"], r["recovery_tool"]) for r in events] == [("e2", True), ("e3", True)]
    assert len(await house.rows("SELECT FROM pinned_entries WHERE fleet = $1")) == 2
    assert said(await house.compact(index=2)) == {1: (Decision.KEPT, DecisionReason.SCORE), 2: BACK, 3: BACK}


async def test_reports_of_what_is_not_there(house):
    """A report with a handle that the fleet does not have recovers nothing and pins nothing; it is counted as a miss."""
    committed = await house.compact()
    for handle in (f"{originals.new_handle()}.e2", originals.new_handle()):
        await report(house, recovered(house, handle))
    await report(house, recovered(house, f"{committed.candidate_handle}.e99"), recovered(house, f"{committed.history_handle}.e2"))
    stranger = recovered(house, f"{committed.candidate_handle}.e2").model_copy(update={"fleet": f"{house.fleet}-other"})
    await report(house, stranger)
    assert await house.rows("SELECT FROM pinned_entries WHERE fleet = $1") == []
    assert len(await house.rows("SELECT FROM recoveries WHERE fleet = $1")) == 2
    rendered = house.stages.telemetry.metrics.render().decode()
    assert 'winnow_recoveries_total{result="not_found",via="runtime"} 3.0' in rendered
    assert said(await house.compact(index=2))[2] == GONE


async def test_whole_originals_and_looks_pin_nothing(house):
    """Who reads a whole candidate, or only looks at an entry, asks for no entry: nothing is pinned."""
    committed = await house.compact()
    await house.ask(committed.candidate_handle)
    await house.stage.http.get(f"/v1/originals/{committed.candidate_handle}.e2")
    assert said(await house.compact(index=2))[2] == GONE


async def test_what_says_something_else_is_judged(house):
    """A check box that was ticked and other words are other claims: a pin keeps the wording that was asked back, and nothing else."""
    text = "## Open TODOs\n- [ ] rebook via Lisbon\n"
    await house.compact(text)
    await house.ask((await house.pruned())[0]["handle"])
    later = await house.compact(text + "- [x] rebook via Lisbon\n- rebook via Porto\n", index=2)
    assert said(later) == {1: BACK, 2: GONE, 3: GONE}


async def test_modes_and_rules(house):
    """In annotate mode the verdict says so too; under the published rules nothing is pinned, as that system has no pins."""
    await house.compact()
    await house.ask((await house.pruned())[0]["handle"])
    assert said(await house.compact(index=2, mode=Mode.ANNOTATE))[2] == BACK
    assert said(await house.compact(index=3, rules=Rules.PUBLISHED))[2] == GONE


async def test_pins_go_with_their_run(house, db):
    """Erasing a run removes its pins and recoveries; other runs keep theirs."""
    for run in ("r", "s"):
        await house.compact(run=run)
        await house.ask((await house.pruned(run))[0]["handle"])
    async with db.transaction() as tx:
        assert set(await recovery.pins_of(tx, {(house.fleet, "r"), (house.fleet, "s")})) == {(house.fleet, "r"), (house.fleet, "s")}
        await erase.erase_run(tx, house.fleet, "r", by="test", now=datetime.now(UTC))
        assert set(await recovery.pins_of(tx, {(house.fleet, "r"), (house.fleet, "s")})) == {(house.fleet, "s")}
    assert {r["run"] for r in await house.rows("SELECT run FROM recoveries WHERE fleet = $1")} == {"s"}
