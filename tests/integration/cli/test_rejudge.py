"""`winnow rejudge`: stored boundaries through another judge, from their originals."""

import asyncio
import json

import pytest

from tests.harness.judge_server import JudgeServer, status
from tests.harness.pipeline import ScriptedJudge, Stages, candidate
from winnow.cli.evaluating import Progress
from winnow.cli.rejudging import Work
from winnow.cli.terminal import Terminal
from winnow.contracts.vocabulary import Mode
from winnow.judging.adapters.registry import build
from winnow.judging.adapters.specs import JudgesSettings
from winnow.judging.local import LocalJudge
from winnow.storage import raw
from winnow.storage.database import Database
from winnow.storage.rejudging import Where

SUMMARY = "## Decisions\n- take HAT136 for $152\n- ask the user about bags\n\n## Open TODOs\n- call the airline about ZZ999"


async def history(dsn, fleet, count=3):
    """Boundaries that a scripted judge has judged and the pruner has committed."""
    async with Database(dsn) as db:
        stages = Stages(db, judge=ScriptedJudge({"ZZ999": 0.1}))
        await stages.run(*(candidate(SUMMARY, run=f"run-{n}", fleet=fleet, mode=Mode.SHADOW) for n in range(count)))


async def told(db, query, *arguments):
    async with db.reading() as tx:
        return [dict(row) for row in await raw.fetch(tx, query, *arguments)]


COMMITTED = (
    "SELECT b.*, (SELECT array_agg((d.n, d.decision, d.score, d.verdict)::text ORDER BY d.n) FROM decisions d WHERE d.fleet = b.fleet"
    " AND d.boundary_id = b.boundary_id) AS decided, (SELECT array_agg((s.n, s.score)::text ORDER BY s.n) FROM scores s"
    " WHERE s.fleet = b.fleet AND s.boundary_id = b.boundary_id AND s.judge = b.judge) AS first_scores,"
    " (SELECT count(*) FROM outbox o WHERE o.fleet = b.fleet) AS outbox FROM boundaries b WHERE b.fleet = $1 ORDER BY b.boundary_id"
)


def work(judge, fleet, **more) -> Work:
    return Work(judge=judge, where=Where(fleets=[fleet]), per_minute=60_000, timeout_s=30, **more)


async def test_scores_stand_side_by_side(database):
    """A second judge's scores are added from the originals; nothing committed changes, and a second time there is nothing to do."""
    await history(database.dsn, "beside")
    async with Database(database.dsn) as db:
        before = await told(db, COMMITTED, "beside")
        job = work(LocalJudge(), "beside")
        pending = await job.pending(db)
        assert (pending.boundaries, pending.entries) == (3, 9)
        done = await job.run(db, Progress(Terminal()), pending.boundaries)
        assert (done.judged, done.scores, dict(done.left_out)) == (3, 9, {})
        assert await told(db, COMMITTED, "beside") == before
        rows = await told(db, "SELECT judge, count(*) AS n FROM scores WHERE fleet = $1 GROUP BY 1 ORDER BY 1", "beside")
        assert [(r["judge"], r["n"]) for r in rows] == [("local", 9), ("scripted", 9)]
        [flight] = await told(
            db, "SELECT DISTINCT score FROM scores WHERE fleet = $1 AND judge = 'local' AND explanation LIKE '%HAT136%'", "beside"
        )
        assert flight["score"] > 0.5, "judged from the outputs of the originals"
        assert (await job.pending(db)).boundaries == 0


async def test_it_goes_on_where_it_was_stopped(database):
    """What was judged before is not judged again; the rest is."""
    await history(database.dsn, "stopped", 5)
    async with Database(database.dsn) as db:
        judge = ScriptedJudge()
        judge.id = judge.id.model_copy(update={"version": "2"})
        job = work(judge, "stopped")
        assert (await job.run(db, Progress(Terminal()), 2)).judged == 2
        assert (await job.pending(db)).boundaries == 3
        assert (await job.run(db, Progress(Terminal()), 100)).judged == 3
        assert judge.asked == 5


async def test_what_cannot_be_judged_is_left_out_with_its_reason(database):
    """Originals that are gone, entries that are not those stored, and a judge without an answer are counted; the rest is judged."""
    await history(database.dsn, "broken", 4)
    async with Database(database.dsn) as db:
        ids = [row["boundary_id"] for row in await told(db, "SELECT boundary_id FROM boundaries WHERE fleet = $1 ORDER BY 1", "broken")]
        async with db.transaction() as tx:
            await raw.execute(tx, "UPDATE boundaries SET task_sha256 = repeat('0', 64) WHERE fleet = 'broken' AND boundary_id = $1", ids[0])
            await raw.execute(tx, "UPDATE entries SET text_key = 'x' WHERE fleet = 'broken' AND boundary_id = $1 AND n = 2", ids[1])
        done = await work(LocalJudge(), "broken").run(db, Progress(Terminal()), 10)
        assert done.judged == 2
        assert dict(done.left_out) == {"its originals are gone": 1, "this version finds other entries in it than were stored": 1}
        silent = ScriptedJudge()
        silent.id, silent.fails = silent.id.model_copy(update={"version": "silent"}), True
        job = work(silent, "broken")
        assert (await job.run(db, Progress(Terminal()), 10)).left_out["the judge gave no answer"] == 2
        assert (await job.pending(db)).boundaries == 4, "no answer is no score: it is asked again next time"


async def test_a_remote_judge_costs_what_is_recorded(database):
    """Each call has an intent and what it took; tokens and cost are summed; a failed call is unknown, never free."""
    await history(database.dsn, "paid")
    async with JudgeServer() as server, Database(database.dsn) as db:
        settings = JudgesSettings.model_validate(
            {"judges": {"jev": {"kind": "jev", "url": server.url, "allow_insecure_url": True, "api_key": "k", "further_attempts": 0}}}
        )
        judges = build(settings)
        job = work(judges.by_name["jev"], "paid")
        server.then(status(400))
        try:
            first = await job.run(db, Progress(Terminal()), 3)
            assert (first.judged, first.left_out["the judge gave no answer"]) == (2, 1)
            assert (first.input_tokens, first.cost_usd) == (None, None)
            second = await job.run(db, Progress(Terminal()), 3)
            assert (second.judged, second.input_tokens) == (1, 1000)
            assert float(second.cost_usd) == pytest.approx(1000 * 0.042 / 1e6)
        finally:
            await judges.close()
        rows = await told(db, "SELECT * FROM judge_calls WHERE fleet = 'paid' AND judge = 'jev'")
        assert len(rows) == 4
        assert all(row["finished_at"] for row in rows)
        assert {(row["parts"], row["state_stage"]) for row in rows} == {(1, "whole")}
        assert sorted(row["input_tokens"] or 0 for row in rows) == [0, 1000, 1000, 1000]


def test_the_command(winnow, database):
    """--dry-run says how much there is and asks nobody; then the judge is asked, and the report can name it."""
    asyncio.run(history(database.dsn, "commanded"))

    def call(*words, **env):
        return winnow(*words, env={"WINNOW_DATABASE_URL": database.dsn, **env})

    dry = call("rejudge", "--judge", "local", "--fleet", "commanded", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert dry.stdout.startswith("3 boundaries (9 entries) have no score by local")
    jev = json.dumps({"jev": {"kind": "jev", "api_key": "k"}})
    dear = call("rejudge", "--judge", "jev", "--fleet", "commanded", "--dry-run", WINNOW_JUDGES=jev)
    assert "million input tokens" in dear.stdout
    assert "US dollars" in dear.stdout
    ran = call("rejudge", "--judge", "local", "--fleet", "commanded", "--limit", "2", "--json")
    assert json.loads(ran.stdout)["judged"] == 2, ran.stderr
    assert json.loads(call("rejudge", "--judge", "local", "--fleet", "commanded", "--json").stdout)["judged"] == 1
    report = call("report", "composition", "--fleet", "commanded", "--judge", "local", "--json")
    assert json.loads(report.stdout)["grader"]["name"] == "local", report.stderr
    assert call("rejudge", "--judge", "nobody").returncode == 1
    assert call("rejudge", "--judge", "jev", WINNOW_JUDGES="[").returncode == 1
