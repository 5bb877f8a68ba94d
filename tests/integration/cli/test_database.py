"""The operators' commands on a real database, and dead letters through a real broker."""

import asyncio
import base64
import json
from datetime import UTC, datetime

import asyncpg
import pytest
from aiokafka import AIOKafkaConsumer

from tests.harness.databases import sql
from winnow.contracts.topics import CANDIDATE
from winnow.contracts.vocabulary import Reason
from winnow.judging.model import shipped
from winnow.storage import dead_letters, fleets
from winnow.storage.database import Database

BODY = b'{"broken": \xff\x1b[31m'


@pytest.fixture
def operate(winnow, database):
    """Run a command on this module's database."""
    return lambda *words, **env: winnow(*words, env={"WINNOW_DATABASE_URL": database.dsn, **env})


def lines(ran) -> list[dict]:
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


async def bury(dsn: str, topic: str, *offsets: int, reason: Reason = Reason.INVALID) -> list[int]:
    letters = [
        dead_letters.NewDeadLetter(
            topic=topic, partition=0, offset=offset, key=b"default/r", value=BODY, headers=(("x", b"\xfe"), ("x", b"2")),
            reason=reason, error="not JSON", service="retriever", fleet="default", run="r",
        )
        for offset in offsets
    ]  # fmt: skip
    async with Database(dsn) as db, db.transaction() as tx:
        await fleets.ensure(tx, ["default"], default=fleets.Point(), now=datetime.now(UTC))
        return [letter.id for letter in await dead_letters.add(tx, letters, now=datetime.now(UTC))]


def test_a_key_is_shown_once_listed_without_its_secret_and_revoked_for_good(operate):
    """The life of an API key."""
    [made] = lines(operate("keys", "create", "--fleet", "acme", "--name", "first [red]", "--role", "grader", "--json"))
    assert made["secret"].startswith("wnw_")
    listed = operate("keys", "list", "--fleet", "acme", "--json")
    assert made["secret"] not in listed.stdout
    assert [(k["key_id"], k["role"], k["revoked_at"]) for k in lines(listed)] == [(made["key_id"], "grader", None)]
    assert "first [red]" in operate("keys", "list").stdout
    assert operate("keys", "revoke", made["key_id"]).returncode == 0
    assert lines(operate("keys", "list", "--fleet", "acme", "--json"))[0]["revoked_at"]
    assert operate("keys", "revoke", "7d0b1c52-8f6e-5a9d-b1a4-2f7c6e1d9a30").returncode == 3


@pytest.mark.parametrize("name", ["UPPER", "", "a b", "x" * 65, "../x"])
def test_a_fleet_that_no_fleet_can_be_called_is_refused(operate, name):
    """`keys create` makes no fleet of a bad name."""
    ran = operate("keys", "create", "--fleet", name)
    assert ran.returncode == 1
    assert "lower-case" in ran.stderr


def test_a_named_point_of_the_local_judge(operate):
    """A point sets the threshold that the shipped model names, for its own judge."""
    operate("keys", "create", "--fleet", "named")
    assert operate("fleet", "set-mode", "named", "enforce", "--point", "published-recall").returncode == 0
    [fleet] = lines(operate("fleet", "show", "named", "--json"))
    assert (fleet["tau"], fleet["judge"]) == (shipped().points["published-recall"], "local")


def test_a_fleets_mode_and_hold(operate):
    """A new operating point keeps what was not said; a hold keeps its first reason until it is released."""
    operate("keys", "create", "--fleet", "held")
    assert operate("fleet", "set-mode", "held", "shadow", "--tau", "0.25").returncode == 0
    assert operate("fleet", "set-mode", "held", "annotate", "--require-certificate").returncode == 0
    operate("fleet", "hold", "held", "--because", "drift")
    operate("fleet", "hold", "held", "--because", "another")
    [fleet] = lines(operate("fleet", "show", "held", "--json"))
    assert (fleet["mode"], fleet["tau"], fleet["require_certificate"], fleet["held_because"]) == ("annotate", 0.25, True, "drift")
    assert "certified" in operate("fleet", "show").stdout
    operate("fleet", "release", "held", "--because", "ok")
    assert lines(operate("fleet", "show", "held", "--json"))[0]["held_since"] is None
    for words in (["show", "nobody"], ["hold", "nobody", "--because", "x"], ["set-mode", "nobody", "shadow"]):
        assert operate("fleet", *words).returncode == 3


def test_a_reader_logs_in_with_the_password_that_is_printed_once(operate, database):
    """`readers create` makes a role that sees the views; its password is nowhere else, and `drop` ends it."""
    operate("keys", "create", "--fleet", "read")
    role = f"reader_{database.name}"[:60]
    [made] = lines(operate("readers", "create", role, "--fleet", "read", "--json"))
    dsn = database.server.dsn(database.name, role=role, password=made["password"], driver="")
    assert sql(dsn, "SELECT count(*) AS n FROM boundary_history")[0]["n"] == 0
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        sql(dsn, "SELECT * FROM boundaries")
    listed = operate("readers", "list", "--json")
    assert (role, "read") in [(one["role"], one["fleet"]) for one in lines(listed)]
    assert made["password"] not in listed.stdout
    assert operate("readers", "create", role, "--fleet", "nobody").returncode == 3
    assert operate("readers", "create", "postgres", "--fleet", "read").returncode in {1, 4}
    assert operate("readers", "drop", role).returncode == 0
    assert operate("readers", "drop", role).returncode == 3


def test_the_schema_is_current_and_upgrading_again_changes_nothing(operate, winnow, empty_database):
    """`db upgrade` brings an empty database up and is idempotent; `db current` says what is pending."""
    assert lines(operate("db", "current", "--json"))[0]["pending"] == []
    empty = {"WINNOW_DATABASE_URL": empty_database.dsn}
    before = lines(winnow("db", "current", "--json", env=empty))[0]
    assert (before["revision"], before["pending"] != []) == (None, True)
    assert "winnow db upgrade" in winnow("fleet", "show", env=empty).stderr
    assert winnow("db", "upgrade", env=empty).returncode == 0
    assert "already" in winnow("db", "upgrade", env=empty).stdout


def test_a_query_reads_and_cannot_write(operate):
    """`db query` shows rows of the views, as a table or as JSON, and refuses to change anything."""
    assert lines(operate("db", "query", "SELECT 1 AS one, NULL AS nothing, 'a:b [x]' AS text", "--json")) == [
        {"one": 1, "nothing": None, "text": "a:b [x]"}
    ]
    assert operate("db", "query", "SELECT * FROM unsupported_by_section").stdout.startswith("fleet")
    assert lines(operate("db", "query", "-- as in the manual\nSELECT 1 AS one;", "--json")) == [{"one": 1}]
    for statement in ("DELETE FROM fleets", "SELECT nope", "SELECT 1; SELECT 2"):
        ran = operate("db", "query", statement)
        assert (ran.returncode, ran.stdout) == (1, ""), statement
        assert "Traceback" not in ran.stderr


def test_a_database_that_is_not_there_is_unreachable_or_refuses(winnow):
    """Exit code 5 where nothing listens, 1 for a URL that is none; never a traceback, never the password."""
    away = winnow("fleet", "show", env={"WINNOW_DATABASE_URL": "postgresql://u:hunter2@127.0.0.1:1/x"})
    assert away.returncode == 5
    nonsense = winnow("fleet", "show", env={"WINNOW_DATABASE_URL": "hunter2"})
    assert nonsense.returncode == 1
    for ran in (away, nonsense):
        assert "Traceback" not in ran.stderr
        assert "hunter2" not in ran.stderr


def test_retention_and_erasing_say_what_they_removed(operate):
    """On a database without old rows both remove nothing and say so."""
    assert lines(operate("retention", "--json"))[0]["boundaries"] == 0
    [erased] = lines(operate("erase", "--fleet", "default", "--run", "nothing", "--yes", "--json"))
    assert (erased["boundaries"], erased["run"]) == (0, "nothing")


def test_a_dead_letter_is_listed_and_shown_with_harmless_text_and_its_bytes_are_given_on_request(operate, database):
    """A person and a script see escapes; --raw gives the bytes, and the audit trail says to whom and why."""
    [letter] = asyncio.run(bury(database.dsn, "some.topic", 7))
    [listed] = [one for one in lines(operate("dead-letters", "list", "--topic", "some.topic", "--json")) if one["id"] == letter]
    assert (listed["reason"], listed["offset"], listed["bytes"]) == ("invalid", 7, len(BODY))
    shown = operate("dead-letters", "show", str(letter))
    assert "\x1b" not in shown.stdout
    assert "\\x1b[31m" in shown.stdout
    [value] = lines(operate("dead-letters", "show", str(letter), "--json"))
    assert (value["masked"], value["body"], value["body_is_cut"]) == (True, BODY.decode("utf-8", "backslashreplace"), False)
    assert value["headers"] == [["x", "\\xfe"], ["x", "2"]]
    assert looks_at(letter, operate) == []
    [exact] = lines(operate("dead-letters", "show", str(letter), "--raw", "--json", "--because", "its producer asked"))
    assert base64.b64decode(exact["body"]) == BODY
    assert [(n, base64.b64decode(v)) for n, v in exact["headers"]] == [("x", b"\xfe"), ("x", b"2")]
    [entry] = looks_at(letter, operate)
    assert (entry["fleet"], entry["because"]) == ("default", "its producer asked")
    assert operate("dead-letters", "show", "999999").returncode == 3
    assert operate("dead-letters", "show", "999999", "--raw").returncode == 3
    assert operate("dead-letters", "show", str(letter), "--because", "no reason").returncode == 2
    assert len(looks_at(letter, operate)) == 1
    assert lines(operate("dead-letters", "list", "--reason", "tombstone", "--json")) == []


def looks_at(letter, operate):
    """What the audit trail says of those who asked for the bytes of one letter."""
    entries = lines(operate("audit", "--action", "dead_letter.raw", "--json"))
    return [entry for entry in entries if entry["details"]["dead_letter"] == letter]


def test_secrets_of_a_dead_letter_are_masked_by_default_and_kept_for_the_replay(operate, database):
    """List and show, for people and for scripts, hold no secret of body, key and headers; the stored bytes are what arrived."""
    token, words = "ghp_" + "a1B2" * 9, "tiger-12345"
    body = json.dumps({"text": json.dumps({"password": words}), "token": token}).encode()

    async def buried() -> int:
        letter = dead_letters.NewDeadLetter(
            topic="secret.topic", partition=0, offset=1, key=f"default/{token}".encode(), value=body, headers=(("note", token.encode()),),
            reason=Reason.INVALID, error="not JSON", service="retriever", fleet="default", run=token,
        )  # fmt: skip
        async with Database(database.dsn) as db, db.transaction() as tx:
            await fleets.ensure(tx, ["default"], default=fleets.Point(), now=datetime.now(UTC))
            [made] = await dead_letters.add(tx, [letter], now=datetime.now(UTC))
            return made.id

    number = str(asyncio.run(buried()))
    for looking in (["list"], ["list", "--json"], ["show", number], ["show", number, "--json"]):
        said = operate("dead-letters", *looking)
        assert said.returncode == 0, said.stderr
        assert token not in said.stdout + said.stderr, looking
        assert words not in said.stdout + said.stderr, looking
    assert "[masked:github-token]" in operate("dead-letters", "show", number).stdout
    [exact] = lines(operate("dead-letters", "show", number, "--raw", "--json"))
    assert base64.b64decode(exact["body"]) == body


def test_a_replay_publishes_the_original_bytes_and_headers_once(operate, database, broker, topic_prefix):
    """The record is on its topic again, byte for byte; what was replayed is not replayed a second time unless asked for."""
    kafka = {"WINNOW_KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap, "WINNOW_TOPIC_PREFIX": topic_prefix, "WINNOW_PARTITIONS": "1"}
    topic = topic_prefix + CANDIDATE.name
    assert operate("topics", "ensure", **kafka).returncode == 0
    ids = asyncio.run(bury(database.dsn, topic, 1, 2))
    assert operate("dead-letters", "replay", "--topic", topic, **kafka).stdout == "replayed 2 of 2 dead letters\n"
    assert operate("dead-letters", "replay", "--topic", topic, **kafka).stdout == "replayed 0 of 0 dead letters\n"
    assert operate("dead-letters", "replay", str(ids[0]), **kafka).stdout == "replayed 1 of 1 dead letters\n"
    records = asyncio.run(read(broker.bootstrap, topic, 3))
    assert [(r.key, r.value, tuple(r.headers)) for r in records] == [(b"default/r", BODY, (("x", b"\xfe"), ("x", b"2")))] * 3
    assert [one["replays"] for one in lines(operate("dead-letters", "list", "--topic", topic, "--json"))] == [1, 2]


def test_what_waits_for_a_service_is_counted(operate, broker, topic_prefix):
    """`topics lag` names each service with its topic; on fresh topics nothing waits, and without a broker it is exit code 5."""
    kafka = {"WINNOW_KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap, "WINNOW_TOPIC_PREFIX": f"{topic_prefix}lag.", "WINNOW_PARTITIONS": "1"}
    operate("topics", "ensure", **kafka)
    found = {(one["service"], one["topic"]): one["records"] for one in lines(operate("topics", "lag", "--json", **kafka))}
    assert found["retriever", CANDIDATE.name] == 0
    assert "retriever" in operate("topics", "lag", **kafka).stdout
    assert operate("topics", "lag", WINNOW_KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1").returncode == 5


def test_replaying_without_a_broker_changes_nothing(operate, database):
    """A broker that is away is exit code 5, and the letters wait."""
    [letter] = asyncio.run(bury(database.dsn, "away", 1))
    ran = operate("dead-letters", "replay", str(letter), WINNOW_KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1")
    assert ran.returncode == 5
    assert "Traceback" not in ran.stderr
    assert lines(operate("dead-letters", "list", "--topic", "away", "--json"))[0]["replays"] == 0


async def read(bootstrap: str, topic: str, count: int) -> list:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        async with asyncio.timeout(30):
            return [await consumer.getone() for _ in range(count)]
    finally:
        await consumer.stop()
