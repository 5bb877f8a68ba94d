"""Operators act and auditors read over HTTP: what changes, who may, and what the audit trail says."""

from datetime import UTC, datetime
from uuid import uuid4

import asyncpg
import pytest

from winnow.contracts.topics import RUNTIME
from winnow.contracts.vocabulary import Reason
from winnow.storage import audit, dead_letters, fleets, raw
from winnow.storage.dead_letters import NewDeadLetter

WHY = {"because": "the tool is mended"}


@pytest.fixture
async def operator(stage):
    """A client with an operator's key, and how the trail names it."""
    secret, key_id = await stage.new_key(role="operator")
    async with stage.client(secret) as http:
        yield http, f"operator:{key_id}"


async def _trail(http, **params):
    return (await http.get("/v1/audit", params=params)).json()["items"]


async def _letter(stage, fleet: str | None = None, **changes) -> int:
    said = {
        "topic": RUNTIME.name, "partition": 0, "offset": uuid4().int % 2**40, "key": f"{stage.fleet}/r".encode(),
        "value": b'{"very": "private content"}', "headers": (("authorization", b"Bearer very-secret"),), "reason": Reason.INVALID,
        "error": "run: field required", "service": "drift_monitor", "attempts": 1, "fleet": fleet or stage.fleet, "run": "r",
        "timestamp": None,
    }  # fmt: skip
    async with stage.db.transaction() as tx:
        (made,) = await dead_letters.add(tx, [NewDeadLetter(**said | changes)], now=datetime.now(UTC))
    return made.id


async def test_hold_and_release(stage, operator):
    """A hold counts at once, a second one keeps the first reason, a release ends it; the trail has who, what and why."""
    http, who = operator
    await stage.submit()
    assert (await http.post("/v1/hold", json={"because": "looks odd"})).json() == {"held": True, "changed": True}
    assert (await http.post("/v1/hold", json={"because": "again"})).json() == {"held": True, "changed": False}
    async with stage.db.transaction() as tx:
        assert (await fleets.load(tx, [stage.fleet]))[stage.fleet].held_because == "looks odd"
    assert (await http.post("/v1/release", json=WHY)).json() == {"held": False, "changed": True, "streams": []}
    assert (await http.post("/v1/release", json=WHY)).json()["changed"] is False
    entries = await _trail(http, action="fleet")
    assert [(e["action"], e["because"], e["outcome"]) for e in entries if e["actor"] == who] == [
        ("fleet.release", "the tool is mended", "done"),
        ("fleet.hold", "looks odd", "done"),
    ]


async def test_erase_a_run(stage, operator):
    """A run is gone afterwards, whatever its name; the trail says that it was erased, and not what it was called."""
    http, who = operator
    run = "a run/with ?odd=name"
    said = await stage.submit(run=run)
    erased = (await http.post("/v1/erasures", json={"run": run, "because": "its user asked"})).json()
    assert erased["boundaries"] == 1
    assert (await stage.http.get(f"/v1/boundaries/{said['boundary_id']}")).status_code == 404
    (entry,) = await _trail(http, action="erase.run")
    assert (entry["actor"], entry["because"], entry["details"]["boundaries"]) == (who, "its user asked", 1)
    assert run not in str(entry)


async def test_dead_letters_are_listed_and_replayed(stage, operator):
    """The list holds no content; a replay is a row of the outbox with the original body, and is counted and told."""
    http, who = operator
    token = "ghp_" + "a1B2" * 9
    letter = await _letter(stage, run=f"r {token}")
    answer = await http.get("/v1/dead-letters")
    (shown,) = answer.json()["items"]
    assert (shown["run"], token in answer.text) == ("r [masked:github-token]", False)
    assert (shown["id"], shown["reason"], shown["replays"]) == (letter, "invalid", 0)
    assert "private content" not in answer.text
    assert "very-secret" not in answer.text
    assert (await http.post(f"/v1/dead-letters/{letter}/replay", json=WHY)).status_code == 202
    assert (await http.get("/v1/dead-letters")).json()["items"][0]["replays"] == 1
    async with stage.db.transaction() as tx:
        (row,) = await raw.fetch(tx, "SELECT topic, headers::text AS headers FROM outbox WHERE fleet = $1", stage.fleet)
    assert row["topic"] == RUNTIME.name
    assert "very-secret" not in row["headers"]
    (entry,) = await _trail(http, action="dead_letter.replay")
    assert (entry["actor"], entry["details"]["dead_letter"], entry["outcome"]) == (who, letter, "done")


async def test_what_fails_is_in_the_trail_too(stage, operator):
    """A replay that cannot be, and one of another fleet's letter, change nothing and leave a row that says so."""
    http, who = operator
    other = f"g{uuid4().hex[:12]}"
    await stage.new_key(other)
    foreign, empty = await _letter(stage, other), await _letter(stage, value=None)
    answers = [await http.post(f"/v1/dead-letters/{n}/replay", json=WHY) for n in (foreign, empty, 2**62)]
    assert [a.status_code for a in answers] == [404, 422, 404]
    entries = await _trail(http)
    assert [(e["action"], e["outcome"], e["actor"]) for e in entries[:3]] == [("dead_letter.replay", "failed", who)] * 3
    async with stage.db.transaction() as tx:
        assert await raw.fetch(tx, "SELECT 1 FROM outbox WHERE fleet = $1 OR fleet = $2", other, stage.fleet) == []
        assert (await dead_letters.get(tx, foreign)).replays == 0


@pytest.mark.parametrize("role", ["runtime", "grader", "auditor"])
async def test_others_may_not_act(stage, role):
    """Only an operator acts; the trail and dead letters are read by auditors as well, and by nobody else."""
    secret, _ = await stage.new_key(role=role)
    letter = await _letter(stage)
    async with stage.client(secret) as http:
        for path in ("hold", "release", f"dead-letters/{letter}/replay"):
            answer = await http.post(f"/v1/{path}", json=WHY)
            assert (answer.status_code, answer.json()["reason"]) == (403, "forbidden"), path
        assert (await http.post("/v1/erasures", json={"run": "r"} | WHY)).status_code == 403
        expected = 200 if role == "auditor" else 403
        assert (await http.get("/v1/audit")).status_code == expected
        assert (await http.get("/v1/dead-letters")).status_code == expected


async def test_the_trail_of_a_fleet_is_its_own(stage, operator):
    """Two operators see each their own fleet's trail and dead letters, page by page, whatever numbers they ask for."""
    http, _ = operator
    for i in range(3):
        await http.post("/v1/hold", json={"because": f"hold {i}"})
        await http.post("/v1/release", json=WHY)
    secret, _ = await stage.new_key(f"g{uuid4().hex[:12]}", role="operator")
    async with stage.client(secret) as other:
        assert {e["action"] for e in await _trail(other)} <= {"key.create"}
        assert (await other.get("/v1/dead-letters")).json()["items"] == []
        assert (await other.post("/v1/hold", json=WHY)).json()["changed"] is True
    page = (await http.get("/v1/audit", params={"limit": 4})).json()
    rest = (await http.get("/v1/audit", params={"limit": 4, "before": page["next_before"]})).json()
    numbers = [e["id"] for e in (*page["items"], *rest["items"])]
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) == len(numbers) >= 7
    async with stage.db.transaction() as tx:
        assert (await fleets.load(tx, [stage.fleet]))[stage.fleet].held_since is None


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"because": ""}', b'{"because": "  "}', b'{"because": 7}', b'{"because": "' + b"x" * 501 + b'"}']
)
async def test_an_action_needs_a_reason(stage, operator, body):
    """Without a reason in words nothing is done, and nothing is written."""
    http, _ = operator
    before = await _trail(http)
    for path in ("hold", "release", "erasures", "dead-letters/1/replay"):
        assert (await http.post(f"/v1/{path}", content=body)).status_code == 422, path
    assert await _trail(http) == before


async def test_no_role_of_winnow_can_change_the_trail(stage, database):
    """Neither the pipeline's role nor the gateway's may update, delete or truncate; even the owner is stopped by the trigger."""
    async with stage.db.transaction() as tx:
        await audit.add(tx, action="test.kept", by="test", now=datetime.now(UTC), fleet=stage.fleet)
    connection = await asyncpg.connect(database.asyncpg_dsn)
    try:
        for role in ("winnow_service", "winnow_gateway", "winnow_view_owner", "winnow_reader"):
            for statement in ("UPDATE audit_log SET actor = 'nobody'", "DELETE FROM audit_log", "TRUNCATE audit_log"):
                await connection.execute(f"SET ROLE {role}")
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.execute(statement)
                await connection.execute("RESET ROLE")
        for statement in ("UPDATE audit_log SET actor = 'nobody'", "DELETE FROM audit_log", "TRUNCATE audit_log"):
            with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="append-only"):
                await connection.execute(statement)
        assert await connection.fetchval("SELECT actor FROM audit_log WHERE action = 'test.kept' AND fleet = $1", stage.fleet) == "test"
    finally:
        await connection.close()
