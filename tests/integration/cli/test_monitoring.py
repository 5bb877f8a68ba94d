"""`winnow streams`, `winnow alerts` and `winnow release` on a database."""

import asyncio
import json

import pytest

from tests.integration.monitor.conftest import Clock
from tests.integration.monitor.playing import Player
from winnow.assurance.state import dump, load
from winnow.cli.app import run as command
from winnow.storage import fleets
from winnow.storage.database import Database as Pool


@pytest.fixture
def operate(database, monkeypatch, capsys):
    """Run a command as an operator; return its exit code, output and errors."""
    monkeypatch.setenv("WINNOW_DATABASE_URL", database.dsn)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = command(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def played(database, request) -> str:
    """A fleet whose stream `harm` has alarmed and whose stream `quiet` has not."""
    fleet = f"cli{abs(hash(request.node.name)) % 10**8}"

    async def work() -> None:
        async with Pool(database.dsn, pool_size=2) as db:
            clock = Clock()
            async with db.transaction() as tx:
                await fleets.ensure(tx, [fleet], default=fleets.Point(), now=clock())
            await Player(db, fleet, clock).play([0.0] * 20 + [1.0] * 20)
            await Player(db, fleet, clock, stream="quiet").play([0.0] * 30)

    asyncio.run(work())
    return fleet


def test_list(operate, played):
    """Each stream is a line of JSON with its evidence, its level and a verdict that claims nothing of a quiet stream."""
    code, out, _ = operate("streams", "list", "--fleet", played, "--json")
    assert code == 0
    found = {s["stream"]: s for s in map(json.loads, out.splitlines())}
    assert (found["harm"]["status"], found["harm"]["verdict"]) == ("alarm", "breached")
    assert (found["quiet"]["status"], found["quiet"]["verdict"], found["quiet"]["guarantee"]) == ("ok", "unproven", "anytime")
    assert found["harm"]["log10_evidence"] > 1
    code, out, _ = operate("streams", "--help")
    assert code == 0
    code, out, _ = operate("streams")
    assert code == 0
    assert "harm" in out


def test_show(operate, played):
    """One stream is shown with its epochs and how each alarmed."""
    code, out, _ = operate("streams", "show", "harm", "--fleet", played, "--json")
    assert code == 0
    shown = json.loads(out)
    assert [(e["epoch"], e["alarm_rule"]) for e in shown["epochs"]] == [(1, "own")]
    assert "own" in operate("streams", "show", "harm", "--fleet", played)[1]
    assert operate("streams", "show", "nobody", "--fleet", played)[0] == 3


def test_show_plots(operate, played, tmp_path):
    """The evidence of a stream's epoch is drawn as SVG or PNG, up to its alarm; another ending is refused before anything is asked."""
    pytest.importorskip("matplotlib")
    for name in ("harm.svg", "harm.png"):
        assert operate("streams", "show", "harm", "--fleet", played, "--plot", str(tmp_path / name))[0] == 0
    drawn = (tmp_path / "harm.svg").read_text()
    assert "likely change" in drawn
    assert "alarm level" in drawn
    assert (tmp_path / "harm.png").read_bytes().startswith(b"\x89PNG")
    code, _, err = operate("streams", "show", "harm", "--fleet", played, "--plot", str(tmp_path / "harm.gif"))
    assert (code, ".svg or .png" in err) == (1, True)


@pytest.mark.parametrize("command", [("streams", "list"), ("alerts",)])
def test_overviews_are_drawn(operate, played, tmp_path, command):
    """Evidence beside its level, and alerts over time, are drawn as SVG or PNG; nothing to draw and another ending are refused in words."""
    pytest.importorskip("matplotlib")
    for name in ("1.svg", "2.svg", "3.png"):
        code, _, err = operate(*command, "--fleet", played, "--plot", str(tmp_path / name))
        assert code == 0, err
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()
    assert ("alarm level" if command[0] == "streams" else "raised") in (tmp_path / "1.svg").read_text()
    assert (tmp_path / "3.png").read_bytes().startswith(b"\x89PNG")
    code, _, err = operate(*command, "--fleet", "nobody", "--plot", str(tmp_path / "none.svg"))
    assert (code, "1 to 60 rows" in err) == (1, True)
    assert operate(*command, "--plot", str(tmp_path / "x.gif"))[0] == 1


def test_replay(operate, played, database):
    """A replay tells that the state is that of the ledger, and with another exit code that it is not; `--repair` mends it."""
    code, out, _ = operate("streams", "replay", "harm", "--fleet", played, "--json")
    assert (code, json.loads(out)["identical"]) == (0, True)
    database.sql("UPDATE monitor_states SET state = 'spoilt' WHERE fleet = $1 AND stream = 'harm'", played)
    code, out, err = operate("streams", "replay", "harm", "--fleet", played)
    assert (code, "--repair" in err, "NOT" in out) == (1, True, True)
    assert operate("streams", "replay", "harm", "--fleet", played, "--repair")[0] == 0
    assert operate("streams", "replay", "harm", "--fleet", played)[0] == 0
    assert operate("streams", "replay", "nobody", "--fleet", played)[0] == 3


def test_a_state_that_was_bet_under_other_constants_says_the_ways_out(operate, played, database):
    """After an update that changed the bets: alert, list, stream and check-up name the commands, and the repair keeps the evidence."""
    (row,) = database.sql("SELECT state, log_evidence FROM monitor_states WHERE fleet = $1 AND stream = 'quiet'", played)
    old = dump(load(row["state"])._replace(config="0" * 16), stream=f"{played}/quiet", epoch=1)
    database.sql("UPDATE monitor_states SET state = $2 WHERE fleet = $1 AND stream = 'quiet'", played, old)
    assert operate("release", played, "--because", "for this test")[0] == 0

    async def one_more() -> None:
        async with Pool(database.dsn, pool_size=2) as db:
            await Player(db, played, Clock(), stream="quiet").play([0.0])

    asyncio.run(one_more())
    repair = f"winnow streams replay quiet --fleet {played} --repair"
    alerts = [json.loads(line) for line in operate("alerts", "--fleet", played, "--json")[1].splitlines()]
    (told,) = [a["because"] for a in alerts if a["kind"] == "raised" and a["stream"] == "quiet"]
    assert "another release" in told
    doctor = " ".join(operate("doctor", "--json")[1].split())
    for said in (told, doctor, " ".join(operate("streams", "show", "quiet", "--fleet", played)[1].split())):
        assert repair in said
        assert f"winnow release {played}" in said
    assert repair in " ".join(operate("streams", "list", "--fleet", played)[1].split())
    assert operate("streams", "replay", "quiet", "--fleet", played, "--repair")[0] == 0
    (mended,) = database.sql("SELECT status, log_evidence FROM monitor_states WHERE fleet = $1 AND stream = 'quiet'", played)
    assert (mended["status"], mended["log_evidence"]) == ("ok", row["log_evidence"])


def test_set(operate, played):
    """A stream's configuration is set in parts, checked and audited."""
    assert operate("streams", "set", "quiet", "--fleet", played, "--alpha", "0.2", "--missing", "skip")[0] == 0
    code, out, _ = operate("streams", "set", "quiet", "--fleet", played, "--watermark-s", "5")
    assert code == 0
    assert '"alpha":0.2' in out
    assert '"watermark_s":5' in out
    assert operate("streams", "set", "quiet", "--fleet", played, "--alpha", "2")[0] == 1
    assert operate("streams", "set", "quiet", "--fleet", "nobody", "--alpha", "0.1")[0] == 3
    assert operate("streams", "set", "missing:quiet", "--fleet", played, "--missing", "skip")[0] == 1


def test_alerts_and_release(operate, played):
    """What was done stands in the list, and a release needs a reason and says which streams begin anew."""
    code, out, _ = operate("alerts", "--fleet", played, "--json")
    assert code == 0
    assert {json.loads(line)["kind"] for line in out.splitlines()} == {"held", "raised"}
    assert "anytime" in operate("alerts", "--fleet", played)[1]
    assert operate("release", played)[0] == 2
    code, out, _ = operate("release", played, "--because", "a false one")
    assert (code, "new epochs of harm" in out) == (0, True)
    assert "was not held" in operate("release", played, "--because", "again")[1]
    assert operate("release", "nobody", "--because", "x")[0] == 3
    assert operate("fleet", "hold", played, "--because", "\udcff")[0] == 0
    assert operate("release", played, "--because", "a byte \udcff that is no UTF-8")[0] == 0
    assert json.loads(operate("alerts", "--fleet", played, "--json", "--limit", "1")[1])["kind"] == "released"
