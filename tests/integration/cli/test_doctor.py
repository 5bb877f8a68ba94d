"""`winnow doctor` and `winnow lag` on a real broker and database."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from tests.harness import databases, eventually
from winnow.contracts.topics import CANDIDATE, EVIDENCE, SCORES, TOPICS
from winnow.messaging import groups
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.topics import ensure_topics
from winnow.storage import dead_letters, fleets
from winnow.storage.database import Database
from winnow.telemetry import Telemetry

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def settings(broker, topic_prefix) -> KafkaSettings:
    """A bus with all topics."""
    made = KafkaSettings(kafka_bootstrap_servers=broker.bootstrap, topic_prefix=topic_prefix, partitions=2)
    databases.blocking(lambda: ensure_topics(made, Telemetry.plain()))
    return made


@pytest.fixture
def ask(winnow, database, settings):
    """Run a command on this broker and database."""
    own = {
        "WINNOW_DATABASE_URL": database.dsn,
        "WINNOW_KAFKA_BOOTSTRAP_SERVERS": settings.kafka_bootstrap_servers,
        "WINNOW_TOPIC_PREFIX": settings.topic_prefix,
        "WINNOW_PARTITIONS": "2",
    }
    return lambda *words, **env: winnow(*words, env=own | env)


def found(ran) -> dict[str, dict]:
    """Findings by check, the worst of each; the last line has the worst of all."""
    order = ["ok", "note", "warning", "error"]
    by_check: dict[str, dict] = {}
    for line in ran.stdout.splitlines()[:-1]:
        one = json.loads(line)
        before = by_check.get(one["check"])
        if before is None or order.index(one["level"]) > order.index(before["level"]):
            by_check[one["check"]] = one
    return by_check


def test_a_bus_and_a_database_that_are_well(ask):
    """Schema, roles, row-level security, clock and topics are looked at and found well; secrets are not printed."""
    ran = ask("doctor", "--json")
    by_check = found(ran)
    for check in ("database", "database.schema", "database.roles", "database.rows", "database.clock", "broker", "topics", "broker.clock"):
        assert by_check[check]["level"] == "ok", by_check[check]
    assert "it sees no other fleet" in by_check["database.rows"]["found"]
    assert json.loads(ran.stdout.splitlines()[-1])["worst"] in {"warning", "error"}, "no service runs, which is no health"
    assert by_check["lag judge"]["level"] in {"ok", "warning"}


def test_a_plain_service_role_can_look_at_all_of_it(ask, database, postgres):
    """In production the role is no superuser: nothing is missing from the look, and it says so where isolation could not be tried."""
    database.sql("CREATE ROLE plain_doctor LOGIN PASSWORD 'plain-doctor-1' IN ROLE winnow_service")
    try:
        url = postgres.dsn(database.name, role="plain_doctor", password="plain-doctor-1")
        by_check = found(ask("doctor", "--json", WINNOW_DATABASE_URL=url))
        assert by_check["database.role"]["level"] == "ok"
        assert "not tried" in by_check["database.rows"]["found"]
        database.sql("GRANT winnow_gateway TO plain_doctor")
        by_check = found(ask("doctor", "--json", WINNOW_DATABASE_URL=url))
        for check in ("database.schema", "database.roles", "database.rows", "outbox", "retention", "fleets"):
            assert by_check.get(check, {"level": "ok"})["level"] in {"ok", "warning"}, by_check[check]
        assert "sees no other fleet" in by_check["database.rows"]["found"]
    finally:
        database.sql("DROP ROLE plain_doctor")


def test_what_is_wrong_is_found_with_advice(ask, database):
    """A table without row-level security, a hold, a dead letter, a forgotten outbox row and a judge that is not there."""
    now = datetime.now(UTC)

    async def spoil() -> None:
        async with Database(database.dsn) as db, db.transaction() as tx:
            await fleets.ensure(tx, ["sick"], default=fleets.Point(judge="nobody"), now=now)
            await fleets.hold(tx, "sick", by="test", because="password=hunter2hunter2 \x1b[2J", now=now)
            letter = dead_letters.NewDeadLetter(
                topic="t", partition=0, offset=0, key=None, value=b"x", headers=(), reason="handler_error", error="e", service="judge"
            )
            await dead_letters.add(tx, [letter], now=now)

    asyncio.run(spoil())
    database.sql(
        "INSERT INTO outbox (fleet, topic, key, body, encoding, event_id, headers, created_at)"
        " VALUES ('sick', 't', 'k', '', 'raw', gen_random_uuid(), '{}', $1)",
        now - timedelta(hours=1),
    )
    database.sql("ALTER TABLE boundaries NO FORCE ROW LEVEL SECURITY")
    try:
        ran = ask("doctor", "--json")
        by_check = found(ran)
        assert ran.returncode == 1
        assert {by_check[c]["level"] for c in ("database.rows", "outbox")} == {"error"}
        assert {by_check[c]["level"] for c in ("fleets.held", "dead-letters")} == {"warning"}
        assert "sick asks for nobody" in ran.stdout
        assert "boundaries" in by_check["database.rows"]["found"]
        assert "hunter2" not in ran.stdout
        assert all(one["advice"] for one in by_check.values() if one["level"] in {"warning", "error"})
        shown = ask("doctor")
        assert "FORCE ROW LEVEL SECURITY" in shown.stdout
        assert "\x1b" not in shown.stdout
    finally:
        database.sql("ALTER TABLE boundaries FORCE ROW LEVEL SECURITY")
        database.sql("DELETE FROM outbox WHERE fleet = 'sick'")


def test_a_policy_that_shows_other_fleets_is_caught_in_the_act(ask, database):
    """Row-level security may be on and a policy too wide: a look as the gateway's role for nobody shows it."""
    database.sql("INSERT INTO runs (fleet, run, agent, boundaries, first_at, last_at) VALUES ('x', 'r', 'a', 1, now(), now())")
    database.sql("CREATE POLICY wide ON runs FOR SELECT TO winnow_gateway USING (true)")
    try:
        one = found(ask("doctor", "--json"))["database.rows"]
        assert (one["level"], "runs" in one["found"]) == ("error", True)
    finally:
        database.sql("DROP POLICY wide ON runs")


def test_a_schema_that_is_old_or_unknown(winnow, empty_database, ask, database):
    """An empty database and one of a newer release have their own advice."""
    ran = winnow("doctor", "--json", env={"WINNOW_DATABASE_URL": empty_database.dsn})
    assert found(ran)["database.schema"]["advice"] == "run `winnow db upgrade`"
    [before] = database.sql("SELECT version_num FROM alembic_version")
    database.sql("UPDATE alembic_version SET version_num = '9999'")
    try:
        assert "9999" in found(ask("doctor", "--json"))["database.schema"]["found"]
    finally:
        database.sql("UPDATE alembic_version SET version_num = $1", before["version_num"])


def test_what_cannot_be_reached_is_said_without_its_password(winnow):
    """A database, broker, gateway and judge that are away are findings, and the command ends with 1."""
    judge = {"jev": {"kind": "jev", "url": "http://127.0.0.1:9/v1", "allow_insecure_url": True, "api_key": "sk-hunter2hunter2"}}
    ran = winnow(
        "doctor",
        "--json",
        env={
            "WINNOW_DATABASE_URL": "postgresql://u:hunter2hunter2@127.0.0.1:9/d",
            "WINNOW_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
            "WINNOW_GATEWAY_URL": "http://127.0.0.1:9",
            "WINNOW_JUDGES": json.dumps(judge),
        },
    )
    by_check = found(ran)
    assert ran.returncode == 1
    assert {by_check[c]["level"] for c in ("database", "broker", "gateway", "judge jev")} == {"error"}
    assert "hunter2" not in ran.stdout + ran.stderr


def test_nothing_named_and_nothing_sound(winnow):
    """Without a Winnow the advice names what to set; settings that cannot be are findings, not tracebacks."""
    ran = winnow("doctor", "--json")
    assert "WINNOW_DATABASE_URL" in found(ran)["database"]["advice"]
    bad = winnow("doctor", "--json", env={"WINNOW_KAFKA_BOOTSTRAP_SERVERS": "x:1", "WINNOW_PARTITIONS": "many", "WINNOW_JUDGES": "["})
    by_check = found(bad)
    assert "WINNOW_PARTITIONS" in by_check["broker"]["found"]
    assert "WINNOW_JUDGES" in by_check["judges"]["found"]


def test_topics_that_are_missing(winnow, broker, database):
    """Each is named, with the command that makes it."""
    own = {"WINNOW_KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap, "WINNOW_TOPIC_PREFIX": "none.", "WINNOW_DATABASE_URL": database.dsn}
    by_check = found(winnow("doctor", "--json", env=own))
    assert {f"topic {topic.name}" for topic in TOPICS} <= set(by_check)
    assert "topics ensure" in by_check[f"topic {CANDIDATE.name}"]["advice"]


async def test_who_is_in_a_group_is_told_for_several_at_once(settings):
    """A group with a member, and one that never was, in one look."""
    pairs = [("judge", EVIDENCE.name), ("pruner", SCORES.name)]
    consumer = AIOKafkaConsumer(
        settings.topic_name(EVIDENCE.name), bootstrap_servers=settings.kafka_bootstrap_servers, group_id=settings.group(*pairs[0]),
        session_timeout_ms=6000, heartbeat_interval_ms=500,
    )  # fmt: skip
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka_bootstrap_servers)
    await asyncio.gather(consumer.start(), admin.start())
    try:

        async def joined() -> bool:
            found = await groups.read(admin, settings, pairs)
            return (found[pairs[0]].members, found[pairs[1]].members) == (1, 0)

        await eventually(joined, 30.0)
    finally:
        await asyncio.gather(consumer.stop(), admin.close())


def test_lag_by_service_and_partition_with_the_age_of_the_oldest(ask, settings):
    """Records that nobody has read are counted where they lie, and the first of each partition says how long it waits."""
    stamped = int((datetime.now(UTC) - timedelta(seconds=100)).timestamp() * 1000)

    async def produce() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=settings.kafka_bootstrap_servers)
        await producer.start()
        try:
            for n in range(3):
                topic = settings.topic_name(CANDIDATE.name)
                await producer.send_and_wait(topic, value=b"secret content", partition=1, timestamp_ms=stamped + 1000 * n)
        finally:
            await producer.stop()

    asyncio.run(produce())
    ran = ask("lag", "--json")
    lines = [json.loads(text) for text in ran.stdout.splitlines()]
    one = next(value for value in lines if value["service"] == "retriever")
    assert (one["records"], one["by_partition"]) == (3, [0, 3])
    assert 100 <= one["oldest_age_s"] < 1000
    assert list(one["oldest_age_by_partition_s"]) == ["1"]
    assert "secret" not in ran.stdout
    shown = ask("lag", "--watch", "--count", "2", "--interval", "0.1")
    assert shown.stdout.count("retriever") == 2
    assert "+0" in shown.stdout
    assert ask("topics", "lag", "--json").returncode == 0


def test_lag_without_a_broker_is_unreachable(winnow):
    """Exit code 5, and the text names the broker."""
    ran = winnow("lag", env={"WINNOW_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9"})
    assert ran.returncode == 5
    assert "127.0.0.1:9" in ran.stderr
