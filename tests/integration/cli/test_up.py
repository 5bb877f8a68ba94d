"""`winnow up` and the commands that find it: a whole Winnow as processes of its own."""

import asyncio
import json
import os
import signal
import stat
import subprocess
from pathlib import Path

import httpx
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.harness import wait_for
from tests.integration.cli.conftest import WINNOW, environment, start_up
from winnow.client import HttpTransport, SyncWinnowClient
from winnow.demo.data import load
from winnow.embedded import ports

pytestmark = pytest.mark.timeout(240)

CANDIDATE = "## Decisions\n- Flight HAT136 costs $152\n- She will probably like it\n"
OUTPUT = '[{"flight_number": "HAT136", "price": 152}]'


def line(run: str, **fields: object) -> str:
    return json.dumps(
        {
            "id": run, "run": run, "host": "openclaw", "task": "Help.", "candidate_summary": CANDIDATE,
            "history": [{"i": 0, "kind": "environment", "tool": "search", "text": OUTPUT}],
        } | fields
    )  # fmt: skip


@pytest.fixture
def ask(up, winnow):
    """Run a command that finds this module's Winnow by its state folder."""
    return lambda *words, stdin="", env=None: winnow(*words, env=up.env | (env or {}), stdin=stdin)


def test_it_says_where_everything_listens_and_keeps_its_secrets(up):
    """Addresses are printed, passwords and keys are not; they lie in a file for the owner alone."""
    wait_for(lambda: "winnow env" in up.output.rpartition("In another terminal:")[2])
    found = up.endpoints
    for address in (found.gateway_url, found.kafka_bootstrap_servers, "postgresql://postgres@127.0.0.1"):
        assert address in up.output
    password = found.database_url.split(":")[2].split("@")[0]
    assert password not in up.output
    assert found.api_key not in up.output
    assert f"{found.gateway_url}/console" in up.output
    key = Path(found.console_key_file)
    assert str(key) in up.output
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_text().strip() not in up.output
    sent = httpx.post(f"{found.gateway_url}/console/sign-in", data={"key": key.read_text().strip()}, timeout=10)
    assert sent.headers["location"] == "/console"
    assert stat.S_IMODE((up.state / "up.json").stat().st_mode) == 0o600


def test_a_submitted_boundary_is_judged_shown_and_listed(up, ask):
    """submit, runs, show and its exact texts, without any configuration."""
    ran = ask("submit", "-", "--mode", "enforce", "--json", stdin=line("submitted"))
    assert ran.returncode == 0, ran.stderr
    view = json.loads(ran.stdout)
    assert (view["status"], view["outcome"], view["mode"], view["fleet"]) == ("committed", "judged", "enforce", "default")
    assert "submitted" in ask("runs").stdout
    boundary = view["boundary_id"]
    assert boundary in ask("runs", "submitted").stdout
    shown = ask("show", boundary, "--evidence")
    assert "keep" in shown.stdout
    assert "HAT136" in shown.stdout
    value = json.loads(ask("show", boundary, "--json").stdout)
    assert [e["n"] for e in value["entries"]] == [1, 2]
    assert ask("show", boundary, "--candidate").stdout == CANDIDATE
    committed = ask("show", boundary, "--committed").stdout
    kept = [e["text"] for e in value["entries"] if e["decision"] == "kept"]
    assert committed == "## Decisions\n" + "".join(text + "\n" for text in kept)


def test_the_same_boundary_again_is_the_stored_result_and_other_content_a_conflict(up, ask):
    """A resubmission answers with what was stored; the same place with another task is exit code 4, its neighbours go on."""
    first = ask("submit", "-", "--json", stdin=line("again"))
    assert ask("submit", "-", "--json", stdin=line("again")).stdout == first.stdout
    ran = ask("submit", "-", "--json", stdin=line("again", task="Other.") + "\nnot json\n" + line("after"))
    assert ran.returncode == 4
    assert "line 1" in ran.stderr
    assert "line 2" in ran.stderr
    assert [json.loads(text)["run"] for text in ran.stdout.splitlines()] == ["after"]


def test_what_is_not_there_is_3(up, ask):
    """An unknown boundary and an unknown run are told apart from failures."""
    assert ask("show", "7d0b1c52-8f6e-5a9d-b1a4-2f7c6e1d9a30").returncode == 3
    assert ask("runs", "nobody").returncode == 3


def test_watching_shows_boundaries_of_the_past_and_then_ends(up, ask):
    """`watch --past --count` prints so many boundaries and returns."""
    ask("submit", "-", stdin=line("watched"))
    ran = ask("watch", "watched", "--past", "--count", "1", "--json")
    assert json.loads(ran.stdout)["run"] == "watched"


def test_the_sdk_finds_it_with_the_printed_variables(up, ask):
    """`winnow env` gives an agent runtime what it needs."""
    shell = subprocess.run(["sh", "-c", ask("env").stdout + "env"], capture_output=True, text=True, check=True)
    variables = dict(one.split("=", 1) for one in shell.stdout.splitlines() if one.startswith("WINNOW_"))
    from winnow.client import boundary

    with SyncWinnowClient(HttpTransport(variables["WINNOW_GATEWAY_URL"], variables["WINNOW_API_KEY"])) as client:
        result = client.compact(boundary(run="sdk", index=1, candidate=CANDIDATE, mode="enforce"), deadline_s=30)
    assert result.bypassed_because is None


def test_an_agent_asks_back_over_mcp(up, ask, tmp_path):
    """`winnow mcp` finds this Winnow; what its agent asks back is told over the bus and is kept at the run's next boundary."""

    async def agent() -> str:
        server = StdioServerParameters(command=WINNOW[0], args=[*WINNOW[1:], "mcp", "--run", "asks"], env=environment(up.state))
        with (tmp_path / "mcp.log").open("w") as log:
            async with stdio_client(server, errlog=log) as (reading, writing), ClientSession(reading, writing) as session:
                await session.initialize()
                listed = (await session.call_tool("pruned_entries", {})).content[0].text.splitlines()[1]
                answer = await session.call_tool("expand", {"handle": listed.split(" ", 1)[0]})
                assert not answer.isError
                assert (await session.call_tool("expand", {"handle": "0" * 32})).isError
        return answer.content[0].text

    ask("submit", "-", "--mode", "enforce", stdin=line("asks"))
    assert asyncio.run(agent()) == "- She will probably like it\n"
    # From the outbox over the bus to the drift monitor, beside the row that the gateway wrote.
    reported = "SELECT count(*) AS n FROM runtime_events WHERE run = 'asks' AND kind = 'recovered' AND part = 'e2' AND recovery_tool"
    wait_for(lambda: json.loads(ask("db", "query", reported, "--json").stdout)["n"] == 1)
    view = json.loads(ask("submit", "-", "--mode", "enforce", "--json", stdin=line("asks", index=2)).stdout)
    (kept,) = [e for e in json.loads(ask("show", view["boundary_id"], "--json").stdout)["entries"] if e["n"] == 2]
    assert (kept["decision"], kept["decision_reason"]) == ("kept", "recovered")
    rows = "SELECT via, asked_back, decision FROM recovery_history WHERE of_run = 'asks'"
    assert json.loads(ask("db", "query", rows, "--json").stdout) == {"via": "gateway", "asked_back": True, "decision": "pruned"}


def test_the_history_is_there_in_sql(up, ask):
    """What was submitted is in the views."""
    ask("submit", "-", stdin=line("sql"))
    ran = ask("db", "query", "SELECT n, decision FROM entry_history WHERE run = 'sql' ORDER BY n", "--json")
    assert [json.loads(text)["n"] for text in ran.stdout.splitlines()] == [1, 2]


def test_a_second_one_in_the_same_state_folder_is_refused(up, ask):
    """The lock names the process that has the folder, and the first goes on."""
    ran = ask("up", "--ephemeral")
    assert ran.returncode == 4
    assert str(up.endpoints.pid) in ran.stderr
    assert ask("runs").returncode == 0


def test_a_key_of_another_fleet_sees_nothing_of_this_one(up, ask):
    """The gateway takes the fleet from the key."""
    ask("submit", "-", stdin=line("private"))
    key = json.loads(ask("keys", "create", "--fleet", "other", "--json").stdout)["secret"]
    ran = ask("runs", "--json", env={"WINNOW_API_KEY": key})
    assert (ran.returncode, ran.stdout) == (0, "")


@pytest.mark.long
@pytest.mark.serial
def test_data_and_key_survive_a_restart_and_ctrl_c_leaves_nothing_running(tmp_path, winnow):
    """Stopped by SIGINT it ends with 0, forgets where it listened, and starts again on the same data with the same key."""
    up = start_up(tmp_path)
    first = up.endpoints
    assert winnow("submit", "-", stdin=line("kept"), env=up.env).returncode == 0
    up.child.send(signal.SIGINT)
    assert up.wait(60) == 0
    assert not (up.state / "up.json").exists()
    assert "stopped" in up.output
    assert nobody_listens(first.gateway_url)
    again = start_up(tmp_path)
    try:
        assert again.endpoints.api_key == first.api_key
        assert "kept" in winnow("runs", env=again.env).stdout
    finally:
        again.child.send(signal.SIGTERM)
        assert again.wait(60) == 0


@pytest.mark.serial
def test_broker_and_database_of_ones_own_replace_the_embedded_ones(tmp_path, winnow, broker, empty_database, topic_prefix):
    """With both variables set nothing is embedded: only the services are started, here all of them in one process, on what is there."""
    own = {
        "WINNOW_KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap, "WINNOW_TOPIC_PREFIX": topic_prefix, "WINNOW_PARTITIONS": "2",
        "WINNOW_DATABASE_URL": empty_database.dsn, "WINNOW_SESSION_TIMEOUT_MS": "6000", "WINNOW_HEARTBEAT_INTERVAL_MS": "1000",
    }  # fmt: skip
    up = start_up(tmp_path, "--one-process", **own)
    try:
        assert (up.endpoints.kafka_bootstrap_servers, up.endpoints.topic_prefix) == (broker.bootstrap, topic_prefix)
        assert "starting PostgreSQL" not in up.output
        assert process_of(up, "gateway") == process_of(up, "retriever")
        view = json.loads(winnow("submit", "-", "--json", stdin=line("own"), env=up.env).stdout)
        assert view["status"] == "committed"
        [stored] = empty_database.sql("SELECT outcome FROM boundary_history WHERE run = 'own'")
        assert stored["outcome"] == "judged"
    finally:
        up.child.send(signal.SIGTERM)
        assert up.wait(60) == 0
    assert {path.name for path in up.state.iterdir()} <= {"up.lock", "api-key", "console-key", "services"}


@pytest.mark.serial
@pytest.mark.parametrize("service", [pytest.param("gateway", marks=pytest.mark.long), "retriever"])
def test_a_service_process_that_ends_stops_everything_and_says_so(tmp_path, service):
    """Killed services are not started again, whichever of the processes it was: `winnow up` names their log and ends with 1."""
    up = start_up(tmp_path, "--ephemeral")
    os.kill(process_of(up, service), signal.SIGKILL)
    assert up.wait(60) == 1
    assert "the services ended by themselves" in up.output


def process_of(up, service: str) -> int:
    """The child of `winnow up` that runs a service."""
    children = Path(f"/proc/{up.child.pid}/task")
    pids = [int(pid) for task in children.iterdir() for pid in (task / "children").read_text().split()]
    return next(pid for pid in pids if service in Path(f"/proc/{pid}/cmdline").read_text().split("\0"))


def nobody_listens(url: str) -> bool:
    return ports.is_free(int(url.rpartition(":")[2]))


@pytest.mark.serial
def test_the_demo_goes_from_nothing_to_a_result(tmp_path):
    """Three boundaries, kept and pruned entries with reasons, an original that is identical, two queries; then it ends with 0."""
    ran = subprocess.run([*WINNOW, "demo"], env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=200)
    assert ran.returncode == 0, ran.stderr
    run = load()
    for one in run.boundaries:
        assert f"Boundary {one.index} of {len(run.boundaries)}" in ran.stdout
    assert "prune" in ran.stdout
    assert "first seen in output #" in ran.stdout
    assert "identical to what the compressor wrote" in ran.stdout
    assert ran.stdout.count("SELECT ") == 2
    assert "goes on with its own candidate" not in ran.stdout
    assert "nothing is left behind" in ran.stderr


def test_the_gateway_answers_who_asks_by_hand(up):
    """The address that is printed serves the documentation that it names."""
    assert httpx.get(up.endpoints.gateway_url + "/openapi.json", timeout=10).status_code == 200
