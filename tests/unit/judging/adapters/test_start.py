"""What a process says of judges that cannot be, before it waits for anything."""

import json

import pytest

from services.__main__ import EXIT_CONFIG, main


@pytest.fixture
def start(monkeypatch, capsys):
    """Start the judge's process with WINNOW_JUDGES; return its exit status and words."""
    monkeypatch.setenv("WINNOW_DATABASE_URL", "postgresql://nobody:secret@127.0.0.1:1/none")
    monkeypatch.setenv("WINNOW_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")

    def call(judges: str) -> tuple[int, str]:
        monkeypatch.setenv("WINNOW_JUDGES", judges)
        code = main(["judge"])
        return code, capsys.readouterr().err

    return call


@pytest.mark.parametrize(
    ("judges", "word"),
    [
        (json.dumps({"jev": {"kind": "jev", "url": "http://host/x", "api_key": "k-secret"}}), "https"),
        (json.dumps({"jev": {"kind": "jev", "timeout_s": -1, "api_key": "k-secret"}}), "JUDGES_JEV"),
        (json.dumps({"both": {"kind": "ensemble", "members": ["nobody"]}}), "nobody"),
        (json.dumps({"jev": {"kind": "other", "api_key": "k-secret"}}), "JUDGES"),
        ('{"jev": "k-secret"', "judges"),
    ],
)
def test_a_judge_that_cannot_be_ends_the_start(start, judges, word):
    """F21: the start ends at once with the status of wrong settings, says which it is, and quotes no key."""
    code, said = start(judges)
    assert code == EXIT_CONFIG
    assert word in said
    assert "secret" not in said
