"""A whole Winnow, backed up while it runs, and another one that goes on from the backup."""

import json
import signal

import httpx
import pytest

from tests.integration.cli.conftest import start_up

pytestmark = [pytest.mark.long, pytest.mark.serial, pytest.mark.timeout(300)]

CANDIDATE = "## Decisions\n- Flight HAT136 costs $152\n- She will probably like it\n- ünïcödé \t kept\n"


def line(run: str, index: int, previous: str | None) -> str:
    """A boundary that carries what was committed before."""
    return json.dumps(
        {
            "id": f"{run}-{index}", "run": run, "index": index, "host": "openclaw", "task": "Help.", "candidate_summary": CANDIDATE,
            "previous_summary": previous,
            "history": [{"i": index, "kind": "environment", "tool": "search", "text": '[{"flight_number": "HAT136", "price": 152}]'}],
        }
    )  # fmt: skip


def test_what_was_submitted_is_answered_by_the_restored_one_to_the_byte(tmp_path, winnow):
    """Backup of a running one, restore into another state folder, `winnow up`: the same results, texts, originals and key."""
    first = start_up(tmp_path / "first")
    submitted = []
    try:
        for run in ("a", "b"):
            previous = None
            for index in (1, 2):
                submitted.append(line(run, index, previous))
                ran = winnow("submit", "-", "--mode", "enforce", "--json", env=first.env, stdin=submitted[-1])
                assert ran.returncode == 0, ran.stderr
                view = json.loads(ran.stdout)
                previous = winnow("show", view["boundary_id"], "--committed", env=first.env).stdout
        asked = [json.loads(winnow("submit", "-", "--mode", "enforce", "--json", env=first.env, stdin=one).stdout) for one in submitted]
        texts = [winnow("show", one["boundary_id"], "--committed", env=first.env).stdout for one in asked]
        ran = winnow("backup", str(tmp_path / "b.zip"), env=first.env)
        assert ran.returncode == 0, ran.stderr
        key = first.endpoints.api_key
    finally:
        first.stop((signal.SIGINT, 45.0))

    second = {"WINNOW_STATE_DIR": str(tmp_path / "second" / "state")}
    (tmp_path / "second").mkdir()
    ran = winnow("restore", str(tmp_path / "b.zip"), "--embedded", env=second)
    assert ran.returncode == 0, ran.stderr
    up = start_up(tmp_path / "second")
    try:
        again = [json.loads(winnow("submit", "-", "--mode", "enforce", "--json", env=up.env, stdin=one).stdout) for one in submitted]
        assert again == asked
        assert [winnow("show", one["boundary_id"], "--committed", env=up.env).stdout for one in again] == texts
        found = httpx.get(
            f"{up.endpoints.gateway_url}/v1/boundaries", params={"run": "a"}, headers={"authorization": f"Bearer {key}"}, timeout=20
        )
        assert found.status_code == 200, "keys of before go on working"
        assert len(found.json()["items"]) == 2
        fresh = winnow("submit", "-", "--mode", "enforce", "--json", env=up.env, stdin=line("a", 3, texts[1]))
        assert json.loads(fresh.stdout)["outcome"] == "judged", fresh.stderr
        [row] = [json.loads(text) for text in winnow(
            "db", "query", "SELECT parent_boundary_id::text AS parent FROM boundaries WHERE run = 'a' AND boundary_index = 3", "--json",
            env=up.env,
        ).stdout.splitlines()]  # fmt: skip
        assert row["parent"] == asked[1]["boundary_id"], "a run goes on from what was restored"
    finally:
        up.stop((signal.SIGINT, 45.0))
