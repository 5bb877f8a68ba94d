"""Keys and the audit trail by command, on a real database."""

import json
from uuid import uuid4

import pytest


@pytest.fixture
def operate(winnow, database):
    """Run a command on this module's database."""
    return lambda *words: winnow(*words, env={"WINNOW_DATABASE_URL": database.dsn})


@pytest.fixture
def fleet() -> str:
    return f"f{uuid4().hex[:12]}"


def _lines(ran) -> list[dict]:
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_key_is_made_rotated_and_revoked(operate, fleet):
    """The new key may do what the old one may, the old one expires; the list has both and no secret; the trail has all of it."""
    (old,) = _lines(operate("keys", "create", "--fleet", fleet, "--name", "ci", "--role", "auditor", "--days", "30", "--json"))
    assert (old["role"], old["fleet"], old["expires_at"] is not None) == ("auditor", fleet, True)
    (new,) = _lines(operate("keys", "rotate", old["key_id"], "--overlap", "2", "--json"))
    assert (new["replaces"], new["role"], new["name"]) == (old["key_id"], "auditor", "ci")
    assert new["secret"] != old["secret"]
    assert operate("keys", "revoke", new["key_id"], "--because", "a test").returncode == 0
    listed = operate("keys", "list", "--fleet", fleet, "--json")
    shown = {key["key_id"]: key for key in _lines(listed)}
    assert (shown[old["key_id"]]["revoked_at"], shown[new["key_id"]]["revoked_at"] is None) == (None, False)
    assert shown[old["key_id"]]["expires_at"] < old["expires_at"]
    trail = _lines(operate("audit", "--fleet", fleet, "--json"))
    assert [(entry["action"], entry["because"]) for entry in trail] == [
        ("key.revoke", "a test"), ("key.rotate", None), ("key.create", None), ("key.create", None),
    ]  # fmt: skip
    assert all(entry["actor"].startswith("cli:") and entry["outcome"] == "done" for entry in trail)
    for secret in (old["secret"], new["secret"]):
        assert secret not in listed.stdout + json.dumps(trail)


def test_keys_of_several_fleets_are_for_people(operate, fleet):
    """An auditor's key may cover more fleets than one, an agent's may not, and the text says why; a dead key is not rotated."""
    both = ("--fleet", fleet, "--fleet", f"{fleet}-b")
    (key,) = _lines(operate("keys", "create", *both, "--role", "auditor", "--json"))
    assert (key["fleet"], key["also"]) == (fleet, [f"{fleet}-b"])
    assert len(_lines(operate("keys", "list", "--fleet", f"{fleet}-b", "--json"))) == 1
    refused = operate("keys", "create", *both)
    assert (refused.returncode, "covers one fleet" in refused.stderr) == (1, True)
    assert operate("keys", "create", "--fleet", "Not A Fleet").returncode != 0
    operate("keys", "revoke", key["key_id"])
    dead = operate("keys", "rotate", key["key_id"])
    assert (dead.returncode, "revoked or has expired" in dead.stderr) == (1, True)
    assert operate("keys", "rotate", str(uuid4())).returncode == 3


def test_the_trail_is_read_in_pages_and_kinds(operate, fleet):
    """The table shows who did what and why; a kind leaves others out, and pages end where the next begins."""
    operate("keys", "create", "--fleet", fleet)
    for n, mode in enumerate(("annotate", "enforce", "shadow")):
        assert operate("fleet", "set-mode", fleet, mode, "--because", f"try {n}").returncode == 0
    shown = operate("audit", "--fleet", fleet)
    assert shown.returncode == 0
    assert "try 2" in shown.stdout
    assert "fleet.point" in shown.stdout
    kind = _lines(operate("audit", "--fleet", fleet, "--action", "fleet", "--json"))
    assert [entry["because"] for entry in kind] == ["try 2", "try 1", "try 0"]
    first = _lines(operate("audit", "--fleet", fleet, "--limit", "2", "--json"))
    rest = _lines(operate("audit", "--fleet", fleet, "--before", str(first[-1]["id"]), "--json"))
    assert [e["id"] for e in first + rest] == [e["id"] for e in _lines(operate("audit", "--fleet", fleet, "--json"))]
    assert "nothing was done yet" in operate("audit", "--fleet", "nobody").stdout


def test_an_erasure_says_why(operate, fleet):
    """The reason of an erasure is in the trail, with what was erased."""
    operate("keys", "create", "--fleet", fleet)
    assert operate("erase", "--fleet", fleet, "--yes", "--because", "the customer left").returncode == 0
    (entry,) = _lines(operate("audit", "--fleet", fleet, "--action", "erase", "--json"))
    assert (entry["action"], entry["because"], entry["details"]["boundaries"]) == ("erase.fleet", "the customer left", 0)
