"""What `winnow doctor` concludes from what it has seen."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.cli.checkup import broker, database, judges, place
from winnow.cli.checkup.findings import Finding, Level, error, exit_code, guarded, note, ok, warning, worst
from winnow.cli.exits import ExitCode
from winnow.contracts.errors import Permanent
from winnow.judging.adapters.specs import JudgesSettings
from winnow.messaging.groups import Group
from winnow.messaging.lag import Lag
from winnow.messaging.topics import Finding as TopicFinding
from winnow.messaging.topics import Severity
from winnow.storage.inspection import Backlog, Guards, Server

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SERVER = Server(
    version=180001, user="winnow", superuser=False, bypasses=False, service=True, skew_s=0.1, trip_s=0.01, size_bytes=2**20
)  # fmt: skip
GUARDS = Guards(missing_roles=(), loose_roles=(), open_tables=(), loose_views=(), lost_readers=(), tables=60, seen_by_nobody=())
QUIET = Backlog(
    now=NOW, fleets=2, held=(), uncertified=(), unwatched=(), expiring=(), judges=(("acme", "local"),), outbox=0, outbox_oldest=None,
    outbox_failed=0, stuck={}, stuck_oldest=None, dead={}, dead_last=None, heartbeats={"m": NOW}, watched=1, overdue=None, alarmed=0,
    webhook_waiting=0, webhook_dead=0, judge_trouble=(), retention_last=NOW - timedelta(days=1), oldest_boundary=NOW - timedelta(days=90),
)  # fmt: skip


def levels(found: list[Finding]) -> dict[str, Level]:
    """The worst level of each check."""
    worst_of: dict[str, Level] = {}
    for one in found:
        worst_of[one.check] = max(one.level, worst_of.get(one.check, Level.OK))
    return worst_of


def test_the_exit_code_is_that_of_the_worst_finding():
    """Errors end with 1, warnings with 7, notes and what is well with 0."""
    assert exit_code([]) is ExitCode.OK
    assert exit_code([ok("a", "x"), note("b", "y")]) is ExitCode.OK
    assert exit_code([note("b", "y"), warning("c", "z", "do")]) is ExitCode.ATTENTION
    assert exit_code([warning("c", "z", "do"), error("d", "w", "do")]) is ExitCode.FAILURE
    assert worst([]) is Level.OK


@given(st.text(max_size=50), st.sampled_from(["postgresql://u:{}@h/d", "password={}", "Bearer {}abcdefgh"]))
def test_no_secret_and_no_control_gets_into_a_finding(text, form):
    """Whatever a finding is made of, passwords are masked and nothing steers the terminal."""
    one = error("x", form.format("hunter2hunter2") + "\x1b[2J" + text, "a\x00b")
    assert "hunter2hunter2" not in one.found
    assert one.found.isprintable()
    assert one.advice.isprintable()


async def test_a_look_that_fails_is_a_finding_and_hides_no_other():
    """Errors of ours say their text, others their type; neither ends the examination."""

    async def ours() -> list[Finding]:
        raise Permanent("set WINNOW_X")

    async def other() -> list[Finding]:
        raise RuntimeError("postgresql://u:secret@h")

    [one] = await guarded("a", ours)
    assert (one.level, one.found) == (Level.ERROR, "set WINNOW_X")
    [two] = await guarded("b", other)
    assert "RuntimeError" in two.found
    assert "secret" not in two.found


@pytest.mark.parametrize(
    ("current", "pending", "level", "advice"),
    [
        (None, ["1", "2"], Level.ERROR, "upgrade"),
        ("1", ["2"], Level.ERROR, "upgrade"),
        ("9", [], Level.ERROR, "release"),
        ("2", [], Level.OK, ""),
    ],
)
def test_the_schema_is_none_old_too_new_or_right(current, pending, level, advice):
    """Each has its own advice."""
    [one] = database.of_schema(current, ["1", "2"], pending)
    assert one.level is level
    assert advice in one.advice


@pytest.mark.parametrize(
    ("change", "check", "level"),
    [
        ({}, "database.role", Level.OK),
        ({"version": 140000}, "database", Level.ERROR),
        ({"version": 190000}, "database", Level.WARNING),
        ({"service": False}, "database.role", Level.ERROR),
        ({"superuser": True, "service": False}, "database.role", Level.NOTE),
        ({"bypasses": True}, "database.role", Level.NOTE),
        ({"skew_s": 3.0}, "database.clock", Level.WARNING),
        ({"skew_s": -30.0}, "database.clock", Level.ERROR),
        ({"skew_s": 3.0, "trip_s": 6.0}, "database.clock", Level.OK),
    ],
)
def test_version_role_and_clock_of_the_server(change, check, level):
    """A skew that the length of the question may explain is none."""
    assert levels(database.of_server(replace(SERVER, **change)))[check] is level


@pytest.mark.parametrize(
    ("change", "check", "level"),
    [
        ({}, "database.rows", Level.OK),
        ({"missing_roles": ("winnow_reader",)}, "database.roles", Level.ERROR),
        ({"loose_roles": ("winnow_gateway",)}, "database.roles", Level.ERROR),
        ({"open_tables": tuple(f"t{n}" for n in range(30))}, "database.rows", Level.ERROR),
        ({"seen_by_nobody": ("boundaries",)}, "database.rows", Level.ERROR),
        ({"seen_by_nobody": None}, "database.rows", Level.WARNING),
        ({"loose_views": ("entry_history",)}, "database.views", Level.ERROR),
        ({"lost_readers": ("bi",)}, "database.readers", Level.WARNING),
    ],
)
def test_roles_and_row_level_security(change, check, level):
    """What would show one tenant another's rows is an error."""
    assert levels(database.of_guards(replace(GUARDS, **change)))[check] is level


def test_a_quiet_installation_has_nothing_to_say():
    """No warning where nothing waits, nobody is silent and the daily job runs."""
    assert worst(database.of_backlog(QUIET)) is Level.OK


@pytest.mark.parametrize(
    ("change", "check", "level"),
    [
        ({"held": (("acme", "new compressor"),)}, "fleets.held", Level.WARNING),
        ({"held": tuple((f"f{n}", "x") for n in range(100))}, "fleets.held", Level.WARNING),
        ({"uncertified": (("acme", "no valid certificate for this compressor"),)}, "fleets.certificates", Level.WARNING),
        ({"expiring": (("acme", NOW + timedelta(days=2)),)}, "fleets.certificates", Level.WARNING),
        ({"unwatched": ("acme",)}, "fleets.monitor", Level.WARNING),
        ({"outbox": 3, "outbox_oldest": NOW - timedelta(seconds=5)}, "outbox", Level.OK),
        ({"outbox": 3, "outbox_oldest": NOW - timedelta(hours=5), "outbox_failed": 2}, "outbox", Level.ERROR),
        ({"stuck": {"judge": 4}, "stuck_oldest": NOW - timedelta(hours=1)}, "boundaries.stuck", Level.WARNING),
        ({"dead": {"handler_error": 2}, "dead_last": NOW - timedelta(days=3)}, "dead-letters", Level.WARNING),
        ({"heartbeats": {"m": NOW - timedelta(minutes=10)}}, "monitor", Level.ERROR),
        ({"heartbeats": {}}, "monitor", Level.WARNING),
        ({"heartbeats": {}, "watched": 0}, "monitor", Level.NOTE),
        ({"overdue": NOW - timedelta(minutes=10)}, "monitor.lag", Level.WARNING),
        ({"alarmed": 1}, "monitor.streams", Level.WARNING),
        ({"webhook_dead": 1}, "webhook", Level.WARNING),
        ({"webhook_waiting": 1}, "webhook", Level.NOTE),
        ({"judge_trouble": (("jev", "unpaid", 5, 5),)}, "judge jev", Level.ERROR),
        ({"judge_trouble": (("jev", "timeout", 1, 5),)}, "judge jev", Level.WARNING),
        ({"retention_last": None}, "retention", Level.WARNING),
        ({"retention_last": NOW - timedelta(days=9)}, "retention", Level.WARNING),
    ],
)
def test_what_waits_was_given_up_or_is_silent(change, check, level):
    """Each has a level and, above a note, advice."""
    found = database.of_backlog(replace(QUIET, **change))
    assert levels(found)[check] is level
    assert all(one.advice for one in found if one.level > Level.NOTE)
    assert len(found) < 30


def test_a_young_installation_needs_no_retention_yet():
    """Before there is anything old, nobody is told that the daily job never ran."""
    young = replace(QUIET, retention_last=None, oldest_boundary=NOW - timedelta(hours=1))
    assert "retention" not in levels(database.of_backlog(young))


def test_a_judge_that_is_not_configured_is_named_with_its_fleet():
    """An operating point may name a judge that WINNOW_JUDGES lacks."""
    assert database.judges_named(QUIET, ["local"]) == []
    [one] = database.judges_named(replace(QUIET, judges=(("acme", "jev"), ("b", "local"))), ["local"])
    assert "acme asks for jev" in one.found


@given(st.timedeltas(min_value=timedelta(days=-1), max_value=timedelta(days=4000)))
def test_a_duration_is_said_in_one_unit(delta):
    """A number and a unit, never a negative one."""
    number, unit = database.span(delta).split()
    assert float(number) >= 0
    assert unit in {"s", "min", "h", "d"}


@pytest.mark.parametrize(
    ("records", "members", "level", "advice"),
    [
        (0, 1, Level.OK, ""),
        (0, 0, Level.WARNING, "start judge"),
        (5, 0, Level.ERROR, "start judge"),
        (5_000, 1, Level.WARNING, "add processes"),
        (5_000, 2, Level.WARNING, "slow"),
        (5_000, None, Level.WARNING, "add processes"),
    ],
)
def test_lag_is_told_apart_from_absence(records, members, level, advice):
    """A lag without a member is an error; a large one says whether more processes would help."""
    lag = Lag(service="judge", topic="t", by_partition=(records, 0))
    groups = {} if members is None else {("judge", "t"): Group(state="Stable", members=members)}
    [one] = broker.of_lags([lag], groups)
    assert one.level is level
    assert advice in one.advice


def test_topics_keep_their_severity_and_their_advice():
    """What is wrong and what to do are told apart."""
    found = broker.of_topics(
        [
            TopicFinding(topic="a", severity=Severity.ERROR, problem="it is missing; run x"),
            TopicFinding(topic="b", severity=Severity.WARNING, problem="strange"),
        ],
        8,
    )
    assert [(one.level, one.check, one.found) for one in found] == [
        (Level.ERROR, "topic a", "it is missing"),
        (Level.WARNING, "topic b", "strange"),
    ]
    assert found[0].advice == "run x"
    assert broker.of_topics([], 8)[0].level is Level.OK


def test_records_from_the_future_are_a_warning():
    """The topics are named."""
    assert broker.of_clocks([])[0].level is Level.OK
    assert "t1" in broker.of_clocks(["t1"])[0].found


JUDGES = JudgesSettings.model_validate(
    {"judges": {"jev": {"kind": "jev", "url": "https://judge.example/v1/account-17", "api_key": "k-secret"}, "bare": {"kind": "jev"}}}
)


async def test_a_judge_is_knocked_at_without_key_or_body():
    """One HEAD request each, no Authorization, no body; the path, which may name an account, is not shown."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(405)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        found = await judges.look(JUDGES, client)
    assert [(r.method, r.content, "authorization" in r.headers) for r in asked] == [("HEAD", b"", False)] * 2
    assert worst(found) is Level.NOTE
    said = " ".join(one.found for one in found)
    assert "judge.example" in said
    assert "account-17" not in said
    assert "k-secret" not in said


@pytest.mark.parametrize(("status", "level"), [(200, Level.OK), (401, Level.OK), (503, Level.WARNING), (None, Level.ERROR)])
async def test_a_judge_answers_fails_or_is_not_there(status, level):
    """Any answer below 500 says that the endpoint is there."""

    def answer(request: httpx.Request) -> httpx.Response:
        if status is None:
            raise httpx.ConnectError("no route", request=request)
        return httpx.Response(status)

    settings = JudgesSettings.model_validate({"judges": {"jev": {"kind": "jev", "api_key": "k"}}})
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        assert levels(await judges.look(settings, client))["judge jev"] is level


async def test_without_remote_judges_nobody_is_asked():
    """The local judge needs no knock."""
    assert [one.level for one in await judges.look(JudgesSettings())] == [Level.OK]


@pytest.mark.parametrize(("free", "level"), [(10 * 2**30, Level.OK), (2**30, Level.WARNING), (2**20, Level.ERROR)])
def test_the_disk(free, level):
    """Little room is a warning, almost none an error."""
    assert place.of_disk(Path("/x/state"), free=free, used=2**20).level is level


def test_a_state_folder_that_was_left_behind(tmp_path):
    """Where the process in up.json has ended, it is said; without a folder there is a note."""
    assert [one.level for one in place.of_state(tmp_path / "none")] == [Level.NOTE]
    (tmp_path / "up.json").write_text("{}")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"x" * 1000)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert levels(place.of_state(tmp_path))["state"] is Level.WARNING
    assert 1000 <= place.size(tmp_path) < 10_000


@pytest.mark.parametrize("body", [b"", b"[1]", b'{"checks": 3}', b"\xff", b"[" * 60_000, b'{"checks": {"kafka": "away", "http": "ok"}}'])
def test_any_answer_of_the_gateway_can_be_read(body):
    """Failing checks are named where the answer has some; any bytes are fine."""
    said = place._checks(body)
    assert said == (": kafka: away" if b"kafka" in body else "")
