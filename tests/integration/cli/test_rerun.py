"""`winnow rejudge --pipeline`: what was committed, through a whole Winnow of its own, and the difference."""

import asyncio
import json

import pytest

from tests.harness.pipeline import Stages, candidate, output
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import MessageKind, Mode
from winnow.judging.local import LocalJudge
from winnow.storage.database import Database

pytestmark = [pytest.mark.long, pytest.mark.serial, pytest.mark.timeout(300)]

SUMMARY = "## Decisions\n- take HAT136 for $152\n- ask the user about bags\n\n## Open TODOs\n- call the airline about ZZ999\n"
#: Tables of content and decisions, which a rerun must not touch.
TABLES = (
    "boundaries",
    "entries",
    "decisions",
    "scores",
    "stage_outputs",
    "fleets",
    "operating_points",
    "outbox",
    "originals",
    "handles",
    "audit_log",
)


async def lived(dsn: str) -> None:
    """Two fleets, runs of three boundaries each of which carries what was committed before, with pins, modes and instructions."""
    async with Database(dsn) as db:
        stages = Stages(db, judge=LocalJudge())
        for fleet, mode in (("one", Mode.ENFORCE), ("two", Mode.SHADOW)):
            for run in range(2):
                previous = None
                for index in (1, 2, 3):
                    history = (
                        Message(i=10 * index, kind=MessageKind.ACTION, text="[tool call] search: {}"),
                        output(10 * index + 1, f"flight HAT136 costs $152, option {index} ok"),
                    )
                    committed = await stages.one(
                        candidate(
                            SUMMARY + f"- option {index} was checked\n",
                            run=f"run-{run}",
                            fleet=fleet,
                            index=index,
                            mode=mode,
                            history=history,
                            previous_summary=previous,
                            pins=("ask the user",) if run else (),
                            custom_instructions="keep it short",
                        )
                    )
                    previous = committed.summary.text
        assert stages.dead == []


def rows(database, tables=TABLES):
    """Everything in these tables."""
    return {name: [r["t"] for r in database.sql(f"SELECT x::text AS t FROM {name} x ORDER BY 1")] for name in tables}  # noqa: S608  constants


@pytest.fixture
def ask(winnow, database):
    """A command on this database."""
    return lambda *words: winnow(*words, env={"WINNOW_DATABASE_URL": database.dsn})


def test_a_rerun_is_the_same_goes_on_where_it_was_and_shows_what_another_threshold_changes(ask, database, tmp_path):
    """Same code, same settings: same bytes; stopped and begun again nothing is run twice; the database that is read is not changed."""
    asyncio.run(lived(database.dsn))
    before = rows(database)
    dry = ask("rejudge", "--pipeline", "--dry-run")
    assert (dry.returncode, "12 boundaries of 4 runs" in dry.stdout) == (0, True), dry.stderr
    work = str(tmp_path / "rerun")
    first = ask("rejudge", "--pipeline", "--work", work, "--limit", "5", "--json")
    assert first.returncode == 0, first.stderr
    assert (json.loads(first.stdout)["boundaries"], json.loads(first.stdout)["same"]) == (5, 5), first.stdout
    whole = ask("rejudge", "--pipeline", "--work", work, "--json")
    value = json.loads(whole.stdout)
    assert (whole.returncode, value["boundaries"], value["same"], value["rescored"]) == (0, 12, 12, 0), whole.stdout
    lines = (tmp_path / "rerun" / "results.jsonl").read_text().splitlines()
    assert len({json.loads(line)["boundary_id"] for line in lines}) == len(lines) == 12
    assert ask("rejudge", "--pipeline", "--work", work, "--tau", "0.9").returncode == 4, "another rerun's folder"

    other = ask("rejudge", "--pipeline", "--tau", "1.0", "--fleet", "one", "--run", "run-0")
    assert other.returncode == 0, other.stderr
    assert "3 boundaries" in other.stdout
    assert "kept → pruned" in other.stdout
    assert "differ" in other.stdout
    assert rows(database) == before


def test_what_cannot_be_run_again_is_left_out(ask, database):
    """Originals that are gone are named, and what followed in that run; the rest is compared, and the exit code is 1."""
    asyncio.run(lived(database.dsn))
    database.sql("UPDATE boundaries SET task_sha256 = repeat('0', 64) WHERE fleet = 'two' AND run = 'run-1' AND boundary_index = 2")
    ran = ask("rejudge", "--pipeline", "--fleet", "two", "--json")
    assert ran.returncode == 1
    value = json.loads(ran.stdout)
    assert (value["boundaries"], value["same"]) == (6, 4), value
    assert value["left_out"] == {"its originals are gone": 1, "an earlier boundary of its run could not be run again": 1}


def test_a_database_that_is_in_use_is_not_touched(ask, database):
    """Not even started on: its outbox would be sent to the other broker."""
    asyncio.run(lived(database.dsn))
    before = rows(database)
    ran = ask("rejudge", "--pipeline", "--into-database", database.dsn)
    assert (ran.returncode, "holds something else" in ran.stderr) == (4, True), ran.stderr
    assert "migrating" not in ran.stderr
    assert rows(database) == before


def test_without_pipeline_a_judge_must_be_named(ask):
    """The scores of which judge are wanted is not guessed."""
    ran = ask("rejudge")
    assert ran.returncode == 2
    assert "--pipeline" in ran.stderr
