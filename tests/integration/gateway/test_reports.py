"""Runtime events and observations."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from winnow.contracts.events import RuntimeEvent
from winnow.storage import runtime_events

AT = "2026-11-30T00:00:00Z"


async def _outbox(stage):
    async with stage.db.transaction() as tx:
        rows = await tx.exec_driver_sql(
            "SELECT topic, key, event_id::text, run, traceparent FROM outbox WHERE fleet = $1 ORDER BY id", (stage.fleet,)
        )
        return rows.all()


async def test_an_event_is_stored_once_before_it_is_answered(stage):
    """The record for the bus is there when 202 comes; the same event again is one record."""
    event = {"event_id": str(uuid4()), "run": "r1", "kind": "run_ended", "at": AT}
    for _ in range(2):
        answer = await stage.http.post("/v1/runtime-events", json=event)
        assert (answer.status_code, answer.json()["event_id"]) == (202, event["event_id"])
    assert await _outbox(stage) == [("winnow.runtime.v1", f"{stage.fleet}/r1", event["event_id"], "r1", None)]


async def test_id_and_time_may_be_left_out(stage):
    """A person with curl needs two fields."""
    answer = await stage.http.post("/v1/runtime-events", json={"run": "r", "kind": "run_ended"})
    assert answer.status_code == 202
    ((_, _, event_id, _, _),) = await _outbox(stage)
    assert event_id == answer.json()["event_id"]


async def test_events_that_are_incomplete_are_refused(stage):
    """Each kind must carry what it is about."""
    for event in (
        {"run": "r", "kind": "adopted"},
        {"run": "r", "kind": "bypassed"},
        {"run": "r", "kind": "recovered"},
        {"run": "r", "kind": "exploded"},
        {"kind": "run_ended"},
        {"run": "r", "kind": "bypassed", "because": "x" * 501},
    ):
        answer = await stage.http.post("/v1/runtime-events", json=event)
        assert (answer.status_code, answer.json()["reason"]) == (422, "invalid"), event
    assert await _outbox(stage) == []


async def test_an_observation_goes_to_its_stream(stage):
    """Keyed by fleet and stream, so that one monitor folds it in order."""
    sampled = {"event_id": str(uuid4()), "stream": "s", "unit": "r", "sampled": {"probability": 0.5, "at": AT}}
    assert (await stage.http.post("/v1/observations", json=sampled)).status_code == 202
    for wrong in ({"sampled": None}, {"sampled": {"probability": 0, "at": AT}}, {"graded": {"loss": 2, "grader": "g", "at": AT}}):
        assert (await stage.http.post("/v1/observations", json=sampled | wrong)).status_code == 422
    assert [row[:2] for row in await _outbox(stage)] == [("winnow.observation.v1", f"{stage.fleet}/s")]


async def test_the_callers_trace_goes_on(stage):
    """A well-formed trace context is stored with the record; a broken one is ignored."""
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    for n, header in enumerate((trace, "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01")):
        event = {"run": f"r{n}", "kind": "run_ended"}
        assert (await stage.http.post("/v1/runtime-events", json=event, headers={"traceparent": header})).status_code == 202
    assert [row[4] for row in await _outbox(stage)] == [trace, None, None]


@pytest.mark.parametrize("purged", [False, True], ids=["waits for the bus", "was handled and purged"])
async def test_another_event_under_a_taken_id_is_refused(stage, purged):
    """What would be dropped later on is told at once: the sender hears 422, and the first event stays as it was."""
    event = {"event_id": str(uuid4()), "run": "r1", "kind": "adopted", "boundary_id": str(uuid4()), "adopted": "candidate", "at": AT}
    other = event | {"adopted": "committed"}
    assert (await stage.http.post("/v1/runtime-events", json=event)).status_code == 202
    if purged:
        async with stage.db.transaction() as tx:
            await runtime_events.store(tx, [RuntimeEvent.model_validate(event | {"fleet": stage.fleet})], now=datetime.now(UTC))
            await tx.exec_driver_sql("DELETE FROM outbox WHERE fleet = $1", (stage.fleet,))
    answer = await stage.http.post("/v1/runtime-events", json=other)
    assert (answer.status_code, answer.json()["reason"]) == (422, "invalid")
    assert answer.json()["detail"].startswith("event_id: it stands for something else")
    assert len(await _outbox(stage)) == (not purged)
    assert (await stage.http.post("/v1/runtime-events", json=event | {"at": "2026-11-30T01:00:00Z"})).status_code == 202


async def test_another_observation_under_a_taken_id_is_refused(stage):
    """A grade under the id of its sample would never reach the monitor; the same observation again is one record."""
    sampled = {"event_id": str(uuid4()), "stream": "s", "unit": "r", "sampled": {"probability": 0.5, "at": AT}}
    graded = sampled | {"sampled": None, "graded": {"loss": 0.5, "grader": "g", "at": AT}}
    for body, status in ((sampled, 202), (sampled, 202), (graded, 422), (graded | {"event_id": str(uuid4())}, 202)):
        assert (await stage.http.post("/v1/observations", json=body)).status_code == status
    assert len(await _outbox(stage)) == 2
