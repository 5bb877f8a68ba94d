"""`winnow rejudge --pipeline`: what was committed, through a whole Winnow of its own, and the difference."""

import asyncio
import json

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from tests.harness import databases
from tests.harness.pipeline import Stages, candidate, output
from winnow.contracts.events import Message
from winnow.contracts.topics import CANDIDATE, COMMITTED, DEAD_LETTER, EVIDENCE, SCORES
from winnow.contracts.vocabulary import MessageKind, Mode
from winnow.judging.local import LocalJudge
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.topics import ensure_topics
from winnow.storage.database import Database
from winnow.telemetry import Telemetry

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
def database(postgres, database_template):
    """A database of each test's own: they change what is stored, and run in any order."""
    with databases.fresh(postgres, template=database_template) as name:
        yield databases.Database(server=postgres, name=name)


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


async def ends(bootstrap: str) -> dict[str, int]:
    """Records of each topic of a broker."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        topics = {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics() if not topic["is_internal"]}
    finally:
        await admin.close()
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        return {
            topic: sum((await consumer.end_offsets([TopicPartition(topic, number) for number in range(count)])).values())
            for topic, count in topics.items()
        }


async def neighbour(bootstrap: str, prefix: str) -> None:
    """Another Winnow's topics on the broker, with a record that a service of a rerun would choke on."""
    await ensure_topics(KafkaSettings(kafka_bootstrap_servers=bootstrap, topic_prefix=prefix, partitions=2), Telemetry.plain())
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(prefix + CANDIDATE.name, b"not a rerun's", key=b"one/run-0")


def test_on_a_broker_of_ones_own_a_rerun_keeps_to_its_own_topics(ask, database, broker, topic_prefix, empty_database, tmp_path):
    """Every record goes to topics under `rerun-<id>.`; those of another Winnow on the broker are neither read nor written."""
    asyncio.run(lived(database.dsn))
    asyncio.run(neighbour(broker.bootstrap, topic_prefix))
    before, rows_before = asyncio.run(ends(broker.bootstrap)), rows(database)
    work = tmp_path / "rerun"
    words = ("rejudge", "--pipeline", "--work", str(work), "--into-kafka", broker.bootstrap, "--into-database", empty_database.dsn)
    part = ask(*words, "--fleet", "one", "--limit", "2", "--json")
    assert (part.returncode, json.loads(part.stdout)["same"]) == (0, 2), part.stderr
    whole = ask(*words, "--fleet", "one", "--json")
    value = json.loads(whole.stdout)
    assert (whole.returncode, value["boundaries"], value["same"]) == (0, 6, 6), whole.stderr
    after = asyncio.run(ends(broker.bootstrap))
    assert {name: count for name, count in after.items() if name in before} == before
    prefix = f"rerun-{json.loads((work / 'rerun.json').read_text())['id']}."
    own = {name: count for name, count in after.items() if name not in before}
    assert {name for name in own if not name.startswith(prefix)} == set()
    assert {own[prefix + topic.name] for topic in (CANDIDATE, EVIDENCE, SCORES, COMMITTED)} == {6}
    assert own[prefix + DEAD_LETTER.name] == 0
    assert empty_database.sql("SELECT count(*) AS n FROM boundaries WHERE committed_at IS NOT NULL")[0]["n"] == 6
    assert rows(database) == rows_before
    assert not (work / "winnow" / "postgres").exists(), "no database is started here"


def test_a_broker_that_is_away_is_said(ask, database, tmp_path):
    """Nothing is run, and the text names the setting."""
    asyncio.run(lived(database.dsn))
    ran = ask("rejudge", "--pipeline", "--into-kafka", "127.0.0.1:1", "--work", str(tmp_path / "rerun"))
    assert (ran.returncode, ran.stdout.count("same")) == (5, 0), ran.stderr
    assert "127.0.0.1:1" in ran.stderr


def test_without_pipeline_a_judge_must_be_named(ask):
    """The scores of which judge are wanted is not guessed."""
    ran = ask("rejudge")
    assert ran.returncode == 2
    assert "--pipeline" in ran.stderr
