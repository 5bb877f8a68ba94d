"""Certificates on a real database: issued, superseded, expired, revoked, and what the pruner's gate makes of each."""

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from winnow.contracts.events import Graded, Observation, Sampled
from winnow.storage import certificates, fleets, observations
from winnow.storage.database import Database
from winnow.storage.fleets import Point

GRADER = ("--grader", "rule:tests", "--compressor", "openclaw:1")


@pytest.fixture
def operate(winnow, database):
    """Run a command on this module's database."""
    return lambda *words, **more: winnow(*words, env={"WINNOW_DATABASE_URL": database.dsn}, **more)


@pytest.fixture
def in_tx(database):
    """Run a coroutine function of a transaction on this module's database."""

    def call(work):
        async def run():
            async with Database(database.dsn) as db, db.transaction() as tx:
                return await work(tx)

        return asyncio.run(run())

    return call


@pytest.fixture
def fleet(in_tx):
    """A fleet of this test's own whose operating point requires a certificate."""
    name = f"fleet-{uuid.uuid4().hex[:12]}"

    async def make(tx):
        await fleets.ensure(tx, [name], default=Point(require_certificate=True), now=datetime.now(UTC))

    in_tx(make)
    return name


@pytest.fixture
def gate(in_tx, fleet):
    """Read the pruner's gate as it will be after so many days."""

    def call(days=0.0):
        async def read(tx):
            at = datetime.now(UTC) + timedelta(days=days, seconds=1)
            return (await fleets.gate(tx, [fleet], now=at, stale_after=timedelta(minutes=1)))[fleet]

        return in_tx(read)

    return call


@pytest.fixture
def stream(in_tx, fleet):
    """A stream of 200 units, 4 of them lost and 2 never graded, all of them decided."""
    now = datetime.now(UTC)

    def event(i):
        loss = None if i >= 198 else float(i % 50 == 0)
        graded = None if loss is None else Graded(loss=loss, lo=0.0, grader="tests", at=now)
        return Observation(
            fleet=fleet, event_id=uuid.uuid4(), stream="harm", unit=f"run-{i}", sampled=Sampled(probability=0.5, at=now), graded=graded
        )

    async def fill(tx):
        await observations.store(tx, [event(i) for i in range(200)], now=now)

    in_tx(fill)
    return "harm"


def state(operate, fleet):
    ran = operate("certificates", "list", fleet, "--json")
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_certificate_opens_the_gate_until_it_expires(operate, fleet, gate):
    """Held without one; free with one; held again when it has expired, without anybody doing anything."""
    assert gate().because == "no valid certificate for this judge and threshold"
    ran = operate("certify", "--counts", "31/500", "--alpha", "0.1", *GRADER, "--fleet", fleet, "--life", "2")
    assert ran.returncode == 0, ran.stderr
    assert "issued for fleet" in ran.stderr
    assert not gate().held
    assert not gate(days=1.9).held
    assert gate(days=2.1).held
    [stored] = state(operate, fleet)
    assert stored["state"] == "live"
    assert stored["record"]["certificate"]["certificate_id"] == stored["certificate_id"]
    assert stored["record"]["certificate"]["tau"] == 0.5
    assert "31 (6.2 %)" in stored["record"]["certificate"]["statement"]


def test_what_is_not_certified_is_not_stored(operate, fleet, gate):
    """Unproven: exit code 6, no certificate, the gate stays closed."""
    ran = operate("certify", "--counts", "42/500", "--alpha", "0.1", *GRADER, "--fleet", fleet)
    assert ran.returncode == 6
    assert state(operate, fleet) == []
    assert gate().held


def test_a_newer_certificate_supersedes_and_a_revocation_closes(operate, fleet, gate):
    """One live certificate a judge and threshold; revoking it closes the gate at once; there is then none to revoke."""
    for counts in ("31/500", "30/500"):
        assert operate("certify", "--counts", counts, "--alpha", "0.1", *GRADER, "--fleet", fleet).returncode == 0
    assert [one["state"] for one in state(operate, fleet)] == ["live", "superseded"]
    assert not gate().held
    assert operate("certificates", "revoke", fleet, "--because", "drift").returncode == 0
    assert gate().held
    assert [one["state"] for one in state(operate, fleet)] == ["revoked", "superseded"]
    assert operate("certificates", "revoke", fleet, "--because", "drift").returncode == 3
    assert "drift" in operate("certificates", "list", fleet).stdout


def test_only_what_is_served_is_certified(operate, fleet):
    """Another threshold or judge than the fleet's, an unknown fleet, and an unsaid grader are refused."""
    counts = ("certify", "--counts", "0/500", "--alpha", "0.1")
    assert "serves tau = 0.5" in operate(*counts, *GRADER, "--fleet", fleet, "--tau", "0.4").stderr
    assert "served by judge local" in operate(*counts, *GRADER, "--fleet", fleet, "--judge", "jev").stderr
    assert "who measured" in operate(*counts, "--fleet", fleet).stderr
    assert operate(*counts, *GRADER, "--fleet", "nobody").returncode == 3
    assert state(operate, fleet) == []


def test_losses_of_a_stream(operate, database, fleet, stream, gate):
    """The ledger's decided units, a missing grade a loss of 1 or left out; the certificate rests on the stream and on it alone."""
    database.sql("UPDATE observations SET fate = CASE WHEN loss IS NULL THEN 'missing' ELSE 'folded' END WHERE fleet = $1", fleet)
    words = ("certify", "--fleet", fleet, "--stream", stream, "--alpha", "0.1", "--compressor", "openclaw", "--json")
    folded = json.loads(operate(*words).stdout)
    assert (folded["certificate"]["n"], folded["certificate"]["k"]) == (200, 6)
    assert "2 of 200 units have no grade: a loss of 1 each" in folded["warnings"]
    skipped = json.loads(operate(*words, "--missing", "skip").stdout)
    assert (skipped["certificate"]["n"], skipped["certificate"]["k"]) == (198, 4)
    assert folded["data"][0]["sha256"] != skipped["data"][0]["sha256"]
    newest = state(operate, fleet)[0]
    assert newest["record"]["stream"] == "harm"
    assert [newest["record"]["subject"]["parameters"][name] for name in ("stream", "first_seq", "last_seq")] == ["harm", 1, 200]
    assert not gate().held
    for flag, why in (("--loss=decision_harm", "choose another --loss"), ("--stream=none", "no stream")):
        ran = operate("certify", "--fleet", fleet, *([] if "stream" in flag else ["--stream", stream]), flag, "--alpha", "0.1")
        assert ran.returncode in {1, 3}
        assert why in ran.stderr


def test_what_ran_under_another_operating_point_is_no_ground(operate, database, fleet, stream):
    """Units that the monitor refused do not count, and an epoch of another operating point than the served one certifies nothing."""
    database.sql("UPDATE observations SET fate = CASE WHEN seq <= 100 THEN 'refused' ELSE 'folded' END WHERE fleet = $1", fleet)
    served = database.sql("SELECT operating_point FROM fleets WHERE fleet = $1", fleet)[0][0]
    words = ("certify", "--fleet", fleet, "--stream", stream, "--alpha", "0.2", "--json")
    epoch = (
        "INSERT INTO monitor_epochs (fleet, stream, epoch, from_seq, config, missing, signature, error_share, started_at, because)"
        " VALUES ($1, 'harm', $2, 1, '{}', 'fold', $3, 0.01, now(), 'test')"
    )
    database.sql(epoch, fleet, 1, json.dumps({"operating_point": served + 1}))
    assert f"fleet {fleet} serves {served}" in operate(*words).stderr
    database.sql(epoch, fleet, 2, json.dumps({"operating_point": served, "compressor": "claude: 4"}))
    ran = operate(*words)
    assert ran.returncode == 0, ran.stderr
    record = json.loads(ran.stdout)
    assert record["certificate"]["n"] == 100
    assert record["compressor"]["name"] == "claude: 4"


def test_units_drawn_unevenly_are_refused(operate, database, fleet, stream):
    """A certificate needs units that were drawn alike; nothing decided is too few."""
    assert "too few" in operate("certify", "--fleet", fleet, "--stream", stream, "--alpha", "0.1", "--compressor", "m", *GRADER[:2]).stderr
    database.sql("UPDATE observations SET fate = 'folded', probability = CASE WHEN seq < 9 THEN 0.5 ELSE 1 END WHERE fleet = $1", fleet)
    ran = operate("certify", "--fleet", fleet, "--stream", stream, "--alpha", "0.1")
    assert ran.returncode == 1
    assert "different probabilities" in ran.stderr


def test_an_operating_point_from_streams(operate, database, fleet, stream):
    """One level a stream, mildest first, from what the monitor's ledger holds."""
    database.sql("UPDATE observations SET fate = 'folded', loss = coalesce(loss, 1) WHERE fleet = $1", fleet)
    ran = operate("calibrate", "--fleet", fleet, "--stream", stream, "--alpha", "0.1", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["subject"]["name"] == "harm"


def test_a_stored_certificate_is_what_was_computed(operate, in_tx, fleet):
    """The columns say what the record says."""
    assert operate("certify", "--counts", "31/500", "--alpha", "0.1", *GRADER, "--fleet", fleet).returncode == 0

    async def read(tx):
        return await certificates.listed(tx, fleet)

    [one] = in_tx(read)
    certificate = one.record["certificate"]
    assert (one.n, one.losses, one.bound, one.alpha, one.delta) == tuple(certificate[k] for k in ("n", "k", "bound", "alpha", "delta"))
    assert (one.judge, one.tau, one.method, one.grader) == ("local", 0.5, "exact (fixed-n)", "rule:tests")
    assert one.compressor == "openclaw 1"
    assert one.judge_version == certificate["judge"]["version"]
