"""`winnow judge --judge NAME` with judges on loopback."""

import json

import pytest

from tests.harness.judge_server import JudgeServer, in_a_thread, status
from tests.unit.cli.test_judge import LINE


@pytest.fixture
def server():
    with in_a_thread(JudgeServer(judges=lambda _id, text: 0.2 if "probably" in text else 0.8)) as made:
        yield made


@pytest.fixture
def judged(winnow, tmp_path, monkeypatch, server):
    """Judge lines with a judge called `jev`; return what the command did and the results."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("WINNOW_JUDGES", json.dumps({"jev": {"kind": "jev", "url": server.url, "allow_insecure_url": True}}))
    monkeypatch.setenv("WINNOW_JUDGES__JEV__API_KEY", "k-secret")

    def call(*words: str):
        source, target = tmp_path / "boundaries.jsonl", tmp_path / "scores.jsonl"
        source.write_text(json.dumps(LINE) + "\n")
        ran = winnow("judge", str(source), "--out", str(target), *words)
        return ran, [json.loads(line) for line in target.read_text().splitlines()] if target.exists() else None

    return call


def test_a_remote_judge_scores_by_name(judged, server):
    """The named judge's scores come out, with who answered and what it took; the key goes to it and nowhere else."""
    ran, [result] = judged("--judge", "jev")
    assert ran.code == 0
    assert [entry["score"] for entry in result["entries"]] == [0.8, 0.2]
    assert (result["judge"]["name"], result["judge"]["model"], result["outcome"], result["requests"]) == ("jev", "jev-1.13.0", "judged", 1)
    assert result["cost_usd"] == pytest.approx(1000 * 0.042 / 1e6)
    assert server.asked[0].headers["authorization"] == "Bearer k-secret"
    assert "k-secret" not in ran.out + ran.err + json.dumps(result)


def test_a_remote_judge_without_an_answer_is_told(judged, server):
    """Entries stay without scores, the line is named with the kind of failure, and the exit code is 1."""
    server.then(status(402))
    ran, [result] = judged("--judge", "jev")
    assert ran.code == 1
    assert "line 1: not judged: jev gave no usable answer (unpaid)" in ran.err
    assert [(entry["score"], entry["verdict"]) for entry in result["entries"]] == [(None, "unscored")] * 2


def test_an_unknown_judge_is_named_with_those_that_are_there(judged):
    """A name that no setting has is an error that lists the names, and nothing is written."""
    ran, result = judged("--judge", "nobody")
    assert (ran.code != 0, result) == (True, None)
    assert "jev, local" in ran.err


def test_settings_that_cannot_work_end_the_command(judged, monkeypatch):
    """A judge that cannot be built is said before a line is read, without the key."""
    monkeypatch.setenv("WINNOW_JUDGES__JEV__ALLOW_INSECURE_URL", "false")
    ran, result = judged("--judge", "jev")
    assert (ran.code != 0, result) == (True, None)
    assert "https" in ran.err
    assert "k-secret" not in ran.err
