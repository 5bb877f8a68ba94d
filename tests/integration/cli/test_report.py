"""`winnow report composition` on a real database."""

import asyncio
import json
from datetime import UTC, datetime

import jsonschema
import pytest

from tests.integration.storage.test_composition import FACT, PLAN, summary
from winnow.contracts.evaluation import json_schema, read_record
from winnow.contracts.vocabulary import Mode
from winnow.storage import fleets
from winnow.storage.database import Database


@pytest.fixture
def operate(winnow, database):
    return lambda *words: winnow(*words, env={"WINNOW_DATABASE_URL": database.dsn})


async def history(dsn, fleet):
    now = datetime.now(UTC)
    async with Database(dsn) as db:
        async with db.transaction() as tx:
            await fleets.ensure(tx, [fleet], default=fleets.Point(), now=now)
        reworded = (PLAN[0], "- call the airline!", *PLAN[2:])
        await summary(db, fleet, now, [PLAN, FACT], index=1)
        await summary(db, fleet, now, [reworded, FACT], index=2)
        await summary(db, fleet, now, [FACT], index=3)
        await summary(db, fleet, now, [PLAN], run="enforced", index=1, mode=Mode.ENFORCE)


def test_composition(operate, database, tmp_path):
    """The report counts watched and enforced runs apart, follows reworded entries, and writes record, Markdown and HTML."""
    asyncio.run(history(database.dsn, "composed"))
    ran = operate("report", "composition", "--fleet", "composed", "--out", str(tmp_path), "--gate", "unsupported.reasoning<=0.5", "--json")
    assert ran.returncode == 6, ran.stderr
    record = read_record(ran.stdout)
    jsonschema.validate(json.loads(ran.stdout), json_schema())
    assert (tmp_path / "evaluation.json").read_text("utf-8") == ran.stdout
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".md", ".html"}
    assert record.metric("unsupported", "reasoning").value == 1.0
    assert (record.metric("unsupported", "all").value, record.metric("unsupported", "all").n) == (0.4, 5)
    assert record.metric("persistence_1", "reasoning").value == 1.0, "the plan was reworded, and stays"
    assert record.metric("carried_exactly", "reasoning").value == 0.0
    assert record.metric("unsupported", "enforced all").n == 1
    assert [row[:2] for row in record.table("composition_published").rows][:2] == [("summaries", 667), ("entries", 26881)]
    assert record.status == "failed"
    pruning = {row[0]: row for row in record.table("composition_pruning").rows}
    assert pruning["watched"][2:5] == (3, 5, 2)
    assert 0 < pruning["watched"][10] < 1


def test_nothing_stored(operate):
    """A fleet without boundaries, or a judge that scored none, is not found; the error says which judges there are."""
    assert operate("report", "composition", "--fleet", "nobody").returncode == 3
    ran = operate("report", "composition", "--judge", "jev")
    assert ran.returncode == 3


def test_the_report_is_readable(operate, database):
    """Without --json the tables are printed, and a report without gates does not call itself passed."""
    asyncio.run(history(database.dsn, "readable"))
    ran = operate("report", "composition", "--fleet", "readable", "--judge", "local@1")
    assert ran.returncode == 0, ran.stderr
    for words in ("Unsupported entries by section", "Persistence", "The paper's figures beside ours", "that is not a pass"):
        assert words in ran.stdout
    ran = operate("report", "composition", "--fleet", "readable", "--judge", "other")
    assert ran.returncode == 3
    assert "local@1" in ran.stderr
