"""`winnow hosts`: yesterday's sessions become boundaries that `winnow judge` takes."""

import json

SUMMARY = "## Key Decisions\n- **Back-off**: the server answers 429 in bursts\n"
ROWS = [
    {"type": "session", "version": 3, "id": "run-9"},
    {
        "type": "message",
        "id": "1",
        "parentId": None,
        "message": {"role": "toolResult", "toolName": "bash", "content": "HTTP 429, in bursts"},
    },
    {"type": "compaction", "id": "2", "parentId": "1", "summary": SUMMARY},
]


def test_a_session_is_read_and_judged(winnow, tmp_path):
    """Session in, boundaries out, scores out: two commands."""
    session, lines, scores = tmp_path / "session.jsonl", tmp_path / "boundaries.jsonl", tmp_path / "scores.jsonl"
    session.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    ran = winnow("hosts", "read", "pi", str(session), "--out", str(lines))
    assert (ran.code, ran.out, ran.err) == (0, "", "1 boundaries\n")
    assert winnow("judge", str(lines), "--out", str(scores)).code == 0
    result = json.loads(scores.read_text())
    assert (result["id"], result["profile"], len(result["entries"])) == ("run-9#1", "pi", 1)


def test_bad_lines_are_named_and_set_the_exit_code(winnow, tmp_path):
    """The rest of the session is read; the exit code tells that something was left out; half a line at the end does not."""
    session = tmp_path / "session.jsonl"
    session.write_bytes(b"\x1b[31m\n" + b"".join(json.dumps(row).encode() + b"\n" for row in ROWS))
    ran = winnow("hosts", "read", "pi", str(session))
    assert (ran.code, len(ran.out.splitlines())) == (1, 1)
    assert "session.jsonl, line 1: not JSON" in ran.err
    assert "\x1b" not in ran.err
    session.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in ROWS) + b'{"type"')
    ran = winnow("hosts", "read", "pi", str(session))
    assert (ran.code, "line 4: cut off" in ran.err) == (0, True)


def test_an_unknown_host_is_told_which_there_are(winnow):
    """The list of readers stands in the error, and in `winnow hosts list`."""
    ran = winnow("hosts", "read", "nobody", "x")
    assert (ran.code, "claude-code" in ran.err) == (2, True)
    assert "claude-code" in winnow("hosts", "list").out
