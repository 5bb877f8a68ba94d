"""A remote judge in the pipeline: honest, down, slow, lying; with its cost, its alerts and its fallbacks."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text as sql

from services.judge.settings import JudgeSettings
from services.retriever.settings import RetrieverSettings
from tests.harness import judge_server as acts
from tests.harness.judge_server import JudgeServer
from tests.harness.pipeline import Stages, candidate
from tests.unit.judging.adapters.asking import settings, spec, transport
from winnow.contracts.envelope import decode
from winnow.contracts.events import Alert, Committed
from winnow.contracts.vocabulary import AlertKind, Outcome, Reason, Verdict
from winnow.judging.adapters import registry
from winnow.judging.adapters.registry import Judges
from winnow.storage import fleets, outbox
from winnow.storage.database import Database
from winnow.storage.fleets import Point

TEXT = "## Decisions\n- Flight HAT136 costs $152\n- Surely the aisle seat is preferred\n\n## Open TODOs\nNone.\n"
PRUNED = "## Decisions\n- Flight HAT136 costs $152\n\n## Open TODOs\nNone.\n"


@pytest.fixture
async def server() -> AsyncIterator[JudgeServer]:
    async with JudgeServer(judges=lambda _id, text: 0.1 if "aisle" in text else 0.95) as made:
        yield made


class World:
    """Stages with judges of some settings, and a fleet that names one of them."""

    def __init__(self, store: Database, judges: Judges, *, fallback: str = "local") -> None:
        self.store = store
        self.judges = judges
        self.stages = Stages(store).with_judges(judges.by_name, fallback=fallback)

    async def fleet(self, judge: str) -> str:
        name = f"fleet-{uuid.uuid4().hex[:8]}"
        async with self.store.transaction() as tx:
            await fleets.ensure(tx, [name], default=Point(judge=judge), now=datetime.now(UTC))
        return name

    async def commit(self, judge: str, **more: Any) -> Committed:
        return await self.stages.one(candidate(TEXT, **{"fleet": await self.fleet(judge), **more}))

    async def rows(self, query: str, fleet: str) -> list[dict[str, Any]]:
        async with self.store.transaction() as tx:
            return [dict(row) for row in (await tx.execute(sql(query), {"fleet": fleet})).mappings()]

    async def calls(self, fleet: str) -> list[dict[str, Any]]:
        return await self.rows("SELECT * FROM judge_calls WHERE fleet = :fleet ORDER BY judge", fleet)

    def count(self, name: Any, **labels: str) -> float:
        return self.stages.telemetry.metrics.value(name, **labels)


@pytest.fixture
async def world(store: Database, server: JudgeServer) -> AsyncIterator[World]:
    judges = registry.build(
        settings(
            jev=spec(server, "jev", attempt_s=2.0, further_attempts=0, breaker_failures=1000),
            other=spec(server, "anthropic", price_input=3.0, price_output=15.0, further_attempts=0),
            both={"kind": "ensemble", "members": ["jev", "other"], "combine": "any", "fallbacks": []},
        ),
        transport=transport,
    )
    made = World(store, judges)
    yield made
    await judges.close()


async def test_a_remote_judge_decides(world: World, server: JudgeServer) -> None:
    """Its scores prune; model, tokens, cost and requests are stored; what the local judge says stands beside, as the reference."""
    committed = await world.commit("jev")
    assert committed.summary is not None
    assert (committed.outcome, committed.summary.text, committed.fallback_for) == (Outcome.JUDGED, PRUNED, None)
    assert committed.judge is not None
    assert (committed.judge.name, committed.judge.model) == ("jev", "jev-1.13.0")
    (call,) = await world.calls(committed.fleet)
    assert (call["judge"], call["model"], call["requests"], call["parts"], call["state_stage"]) == ("jev", "jev-1.13.0", 1, 1, "whole")
    assert (call["input_tokens"], call["output_tokens"], call["evidence_truncated"], call["error"]) == (1000, 8, False, None)
    assert float(call["cost_usd"]) == pytest.approx(1000 * 0.042 / 1e6)
    assert call["finished_at"] >= call["started_at"]
    scores = await world.rows("SELECT judge, n, p, model FROM scores WHERE fleet = :fleet ORDER BY judge, n", committed.fleet)
    assert [(s["judge"], s["n"], s["model"]) for s in scores] == [
        ("jev", 1, "jev-1.13.0"), ("jev", 2, "jev-1.13.0"), ("local", 1, None), ("local", 2, None),
    ]  # fmt: skip
    assert [s["p"] for s in scores[:2]] == [0.95, 0.1]
    assert world.count("winnow_judge_disagreement", judge="jev") > 0
    assert world.count("winnow_judge_tokens_total", judge="jev", direction="input") == 1000


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (acts.status(500), "server_error"), (acts.stalled, "timeout"), (acts.stalled_inside, "timeout"), (acts.broken_off, "connect"),
        (acts.raw(b"[]"), "malformed"), (acts.raw(b"<html>"), "malformed"), (acts.status(302, {"location": "/"}), "redirected"),
    ],
)  # fmt: skip
async def test_a_judge_that_is_down_slow_or_lying_costs_no_turn(world: World, server: JudgeServer, act: Any, error: str) -> None:
    """F22, F23: the fallback answers, which is recorded with the kind of failure, and the next boundary is judged as ever."""
    server.then(act)
    committed = await world.commit("jev")
    assert (committed.outcome, committed.fallback_for) == (Outcome.JUDGED, "jev")
    assert committed.judge is not None
    assert committed.judge.name == "local"
    remote, local = sorted(await world.calls(committed.fleet), key=lambda c: c["judge"] != "jev")
    assert (remote["error"], remote["cost_usd"], local["error"]) == (error, None, None)
    assert world.count("winnow_judge_failures_total", judge="jev", failure=error) == 1
    assert (await world.commit("jev")).fallback_for is None


async def test_a_missing_answer_keeps_its_entry(world: World, server: JudgeServer) -> None:
    """An entry without a usable answer is kept and the boundary says so."""
    server.judges = lambda _id, text: None if "aisle" in text else 0.95
    committed = await world.commit("jev")
    assert (committed.outcome, committed.reason, committed.pruned) == (Outcome.JUDGED_PARTIAL, Reason.UNSCORED_ENTRIES, 0)
    assert committed.decisions[1].verdict is Verdict.UNSCORED


async def test_nobody_answers(store: Database, server: JudgeServer) -> None:
    """Where not even the last resort has an answer, the candidate is committed as it was written."""
    from tests.harness.pipeline import ScriptedJudge

    judges = registry.build(settings(jev=spec(server, further_attempts=0)), transport=transport)
    broken = ScriptedJudge()
    broken.fails = True
    world = World(store, judges)
    world.stages.with_judges({**judges.by_name, "local": broken})
    server.then(acts.status(500))
    committed = await world.commit("jev")
    assert (committed.outcome, committed.reason, committed.pruned) == (Outcome.UNJUDGED, Reason.JUDGE_FAILED, 0)
    assert committed.summary is not None
    assert committed.summary.text == TEXT
    await judges.close()


async def test_a_remote_fallback_is_not_asked_past_the_deadline(store: Database, server: JudgeServer) -> None:
    """After the deadline neither the named judge nor a remote fallback is asked; the local scores are stored."""
    judges = registry.build(settings(jev=spec(server), other=spec(server, "anthropic")), transport=transport)
    world = World(store, judges, fallback="other")
    committed = await world.commit("jev", deadline=datetime.now(UTC) - timedelta(seconds=1))
    assert server.asked == []
    assert (committed.outcome, committed.reason, committed.late, committed.fallback_for) == (Outcome.UNJUDGED, Reason.DEADLINE, True, "jev")
    assert committed.judge is not None
    assert committed.judge.name == "local"
    assert all(d.score is not None for d in committed.decisions)
    await judges.close()


async def test_the_call_ends_before_the_boundarys_deadline(world: World, server: JudgeServer) -> None:
    """A judge that stalls is left while there is time for the fallback: the boundary is judged, and not late."""
    server.then(acts.stalled)
    committed = await world.commit("jev", deadline=datetime.now(UTC) + timedelta(seconds=30))
    assert (committed.outcome, committed.fallback_for, committed.late) == (Outcome.JUDGED, "jev", False)


async def test_a_remote_fallback_answers_for_a_judge_that_is_down(store: Database, server: JudgeServer) -> None:
    """The fallback is asked before the local judge, and the boundary says for whom it answers."""
    judges = registry.build(settings(jev=spec(server, further_attempts=0), other=spec(server, "anthropic")), transport=transport)
    world = World(store, judges, fallback="other")
    server.then(acts.status(500))
    committed = await world.commit("jev")
    assert committed.judge is not None
    assert (committed.judge.name, committed.fallback_for) == ("other", "jev")
    assert [(c["judge"], c["error"]) for c in await world.calls(committed.fleet)] == [("jev", "server_error"), ("other", None)]
    await judges.close()


async def test_an_ensemble_has_a_row_for_each_member(world: World, server: JudgeServer) -> None:
    """What members said and cost is stored under their own names, once; the ensemble's own row costs nothing again."""
    committed = await world.commit("both")
    assert committed.judge is not None
    assert (committed.judge.name, committed.outcome) == ("both", Outcome.JUDGED)
    calls = {c["judge"]: c for c in await world.calls(committed.fleet)}
    assert set(calls) == {"both", "jev", "other"}
    assert (calls["both"]["requests"], calls["both"]["cost_usd"], calls["both"]["error"]) == (0, None, None)
    assert float(calls["other"]["cost_usd"]) == pytest.approx((1000 * 3.0 + 50 * 15.0) / 1e6)
    scores = await world.rows("SELECT DISTINCT judge FROM scores WHERE fleet = :fleet ORDER BY judge", committed.fleet)
    assert [s["judge"] for s in scores] == ["both", "jev", "local", "other"]


@pytest.mark.parametrize(("code", "kind"), [(401, AlertKind.JUDGE_UNAUTHORISED), (402, AlertKind.JUDGE_UNPAID)])
async def test_a_refused_key_or_account_is_told_once(world: World, server: JudgeServer, code: int, kind: AlertKind) -> None:
    """The circuit opens, one alert goes through the outbox, and the next boundaries are judged without asking again."""
    server.then(acts.status(code))
    first = await world.commit("jev")
    second = await world.commit("jev", fleet=first.fleet, index=2)
    assert len(server.asked) == 1
    assert [c["error"] for c in await world.calls(first.fleet) if c["judge"] == "jev"].count("circuit_open") == 1
    assert (second.outcome, second.fallback_for) == (Outcome.JUDGED, "jev")
    alerts = await world.rows("SELECT * FROM alerts WHERE fleet = :fleet", first.fleet)
    assert [a["kind"] for a in alerts] == [kind.value]
    async with world.store.transaction() as tx:
        told = [decode(Alert, m.message.body) for m in await outbox.claim(tx) if m.message.fleet == first.fleet]
    assert [(a.kind, a.alert_id) for a in told] == [(kind, alerts[0]["alert_id"])]
    assert "jev" in told[0].because
    assert world.count("winnow_alerts_total", kind=kind.value) == 1


async def test_f22_two_workers_with_one_boundary_store_one_answer(world: World, server: JudgeServer) -> None:
    """F22: of two that judge the same boundary at the same time the first answer stands, and both publish it."""
    stages, fleet = world.stages, await world.fleet("jev")
    evidence = await stages.retrieve(candidate(TEXT, fleet=fleet))
    server.then(acts.together(2), acts.together(2))
    first, second = await asyncio.gather(*(stages.step(stages.judging, evidence.outgoing) for _ in range(2)))
    assert first.outgoing[0].body == second.outgoing[0].body
    assert len([c for c in await world.calls(fleet) if c["judge"] == "jev"]) == 2


async def test_a_crash_in_the_middle_of_a_call_stays_visible(world: World, server: JudgeServer) -> None:
    """The intent is there before the judge is asked, and without an end when the worker dies."""
    stages, fleet = world.stages, await world.fleet("jev")
    evidence = await stages.retrieve(candidate(TEXT, fleet=fleet))
    server.then(acts.stalled)
    task = asyncio.create_task(stages.step(stages.judging, evidence.outgoing))
    await server.until(1)
    task.cancel()
    await asyncio.wait({task})
    (call,) = await world.calls(fleet)
    assert (call["judge"], call["finished_at"]) == ("jev", None)


@pytest.mark.parametrize("tau", ["nan", "-0.1", "1.1", "inf", "x"])
def test_f11_a_threshold_outside_0_and_1_is_an_error_at_the_start(tau: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F11: a tau that is no probability ends the start, not the first event."""
    monkeypatch.setenv("WINNOW_DEFAULT_TAU", tau)
    with pytest.raises(ValueError, match="default_tau"):
        RetrieverSettings()


def test_settings_come_from_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges are one JSON variable; single fields, keys above all, have variables of their own; a fallback must be there."""
    monkeypatch.setenv("WINNOW_JUDGES", json.dumps({"jev": {"kind": "jev"}}))
    monkeypatch.setenv("WINNOW_JUDGES__JEV__API_KEY", "k-secret")
    monkeypatch.setenv("WINNOW_FALLBACK_JUDGE", "jev")
    made = JudgeSettings()
    key = made.judges["jev"].api_key  # type: ignore[union-attr]
    assert key is not None
    assert key.get_secret_value() == "k-secret"
    assert "k-secret" not in repr(made)
    monkeypatch.setenv("WINNOW_FALLBACK_JUDGE", "nobody")
    with pytest.raises(ValueError, match="there is no judge 'nobody'"):
        JudgeSettings()
