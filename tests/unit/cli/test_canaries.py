"""`winnow canaries`: known answers, and what being asked about them does to the others."""

import json

import pytest

from tests.harness.judge_server import JudgeServer, in_a_thread

RUNS = (("run-1", "ZX81QA", "2031-04-17", "INV-99417"), ("run-2", "HAT136", "2029-01-30", "QX7PLM"))


@pytest.fixture
def ask(winnow, tmp_path, monkeypatch):
    """Ask a judge at a server about two boundaries of two runs; return what was measured."""
    source = tmp_path / "boundaries.jsonl"
    lines = []
    for run, first, date, last in RUNS:
        text = f"## Decisions\n- Order {first} leaves on {date}\n- Receipt {last} is filed\n"
        history = [
            {
                "i": 1,
                "kind": "environment",
                "tool": "read",
                "text": f"order {first} leaves on {date}\nreceipt: {last}\nplace: shelf {first}-7\n",
            }
        ]
        lines.append({"id": f"{run}#1", "run": run, "candidate_summary": text, "history": history, "host": "openclaw"})
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def call(server: JudgeServer | None, *words: str):
        if server is not None:
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            monkeypatch.setenv("WINNOW_JUDGES", json.dumps({"jev": {"kind": "jev", "url": server.url, "allow_insecure_url": True}}))
        return winnow("canaries", str(source), *words)

    return call


def test_the_local_judge_is_not_moved(ask):
    """Each boundary gets one of either answer; the local judge says of the real entries what it says without."""
    ran = ask(None, "--json")
    measured = json.loads(ran.out)
    assert (ran.code, measured["boundaries"], measured["kept"]["donor"]["n"], measured["kept"]["output"]["n"]) == (0, 2, 2, 2)
    assert measured["effect"] == {"entries": 4, "mean_distance": 0.0, "flips": 0.0} == measured["noise"]


def test_an_effect_is_told_apart_from_noise(ask):
    """A judge that says something else of the same entries when more are asked about is found out."""
    with in_a_thread(JudgeServer()) as server:
        server.judges = lambda _id, _text: 0.9 if len(server.asked[-1].names) == 2 else 0.4
        measured = json.loads(ask(server, "--judge", "jev", "--json").out)
    assert measured["noise"]["mean_distance"] == 0.0
    assert measured["effect"]["mean_distance"] == pytest.approx(0.5)
    assert measured["effect"]["flips"] == 1.0
    assert len(server.asked) == 6


def test_the_limit_bounds_what_is_paid(ask):
    """No more boundaries are asked about than were allowed, three requests each; the table says what was found."""
    with in_a_thread(JudgeServer()) as server:
        ran = ask(server, "--judge", "jev", "--limit", "1")
    assert len(server.asked) == 3
    assert "with canaries" in ran.out


def test_a_judge_without_an_answer_is_told(ask):
    """Boundaries without an answer are counted and compared with nothing."""
    with in_a_thread(JudgeServer(judges=lambda _id, _text: None)) as server:
        ran = ask(server, "--judge", "jev")
    assert "2 of 2 boundaries had no answer" in ran.err


def test_a_bad_line_ends_the_command(winnow, tmp_path):
    """A line that is no boundary is named."""
    source = tmp_path / "in"
    source.write_text("not json\n")
    ran = winnow("canaries", str(source))
    assert ran.code != 0
    assert "line 1" in ran.err


def test_an_empty_file_is_told(winnow, tmp_path):
    """Nothing to plant in is no measurement."""
    (tmp_path / "empty").write_text("\n")
    ran = winnow("canaries", str(tmp_path / "empty"))
    assert (ran.code, ran.out) == (1, "")
    assert "holds no boundary" in ran.err
