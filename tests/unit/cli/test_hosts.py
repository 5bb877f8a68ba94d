"""`winnow hosts`: yesterday's sessions become boundaries that `winnow judge` takes."""

import io
import json

import pytest

from tests.unit.client.answers import pruned
from winnow.client import SyncWinnowClient
from winnow.client.hosts.command_hook import NotForUs, answer, boundary_of
from winnow.client.testing import MemoryTransport
from winnow.contracts.events import Text
from winnow.contracts.vocabulary import Mode
from winnow.hosts_assets import PROGRAMS

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
    assert (ran.code, ran.out, ran.err) == (0, "", "1 boundary\n")
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


SCRIPT = "- 12 tests passed\n- PLAN to delete\n"
TRANSCRIPT = [
    {"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "s-1", "message": {"role": "user", "content": "test it"}},
    {"type": "system", "subtype": "compact_boundary", "uuid": "2", "parentUuid": None, "logicalParentUuid": "1", "compactMetadata": {}},
    {"type": "user", "uuid": "3", "parentUuid": "2", "isCompactSummary": True, "message": {"role": "user", "content": SCRIPT}},
]


@pytest.fixture
def hooked(tmp_path):
    """The input of Claude Code's hook after a compaction."""
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in TRANSCRIPT))
    return {"hook_event_name": "SessionStart", "source": "compact", "session_id": "s-1", "transcript_path": str(path)}


@pytest.fixture
def client():
    """A Winnow in memory that finds no source for lines with the word PLAN."""

    def answers(candidate, request_sha256):
        start = len(candidate.candidate.partition("- PLAN")[0].encode())
        spans = [(start, len(candidate.candidate.encode()))] if "PLAN" in candidate.candidate else []
        made = pruned(candidate, request_sha256, *spans, mode=candidate.mode)
        return made.model_copy(update={"summary": Text.of(candidate.candidate), "committed_sha256": candidate.candidate_sha256})

    with SyncWinnowClient(MemoryTransport(answers)) as made:
        yield made


def test_claude_code_is_told_which_entries_have_no_source(hooked, client):
    """The answer is additional context for the agent, and names the entry; the summary itself cannot be changed."""
    made = answer("claude-code", json.dumps(hooked).encode(), client, fleet="team")
    assert list(made) == ["hookSpecificOutput"]
    assert made["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert made["hookSpecificOutput"]["additionalContext"].endswith("\n- - PLAN to delete")
    asked = boundary_of("claude-code", json.dumps(hooked).encode(), fleet="team")
    assert (asked.fleet, asked.run, asked.mode, asked.candidate) == ("team", "s-1", Mode.ANNOTATE, SCRIPT)


def test_the_end_of_a_session_ends_its_run(hooked):
    """`SessionEnd` is reported as `run_ended`, with whether the agent had the recovery tools where the client was told."""
    transport = MemoryTransport()
    with SyncWinnowClient(transport, recovery_tool=True) as client:
        said = json.dumps({**hooked, "hook_event_name": "SessionEnd", "reason": "other"}).encode()
        assert answer("claude-code", said, client, fleet="team") is None
        with pytest.raises(ValueError, match="run"):
            answer("claude-code", said.replace(b'"s-1"', b'""'), client, fleet="team")
        with pytest.raises(NotForUs):
            answer("claude-code", said.replace(b'"s-1"', b"7"), client, fleet="team")
    (event,) = transport.reports
    assert (event.kind, event.fleet, event.run, event.recovery_tool) == ("run_ended", "team", "s-1", True)


def test_a_hook_that_tells_of_no_compaction_does_nothing(hooked, client, tmp_path):
    """Other events, other sources, files that are none, hostile input, a session without a compaction, an encrypted one."""
    for change in (
        {"hook_event_name": "PreCompact"}, {"source": "resume"}, {"transcript_path": "/etc/passwd"}, {"transcript_path": 7},
        {"transcript_path": str(tmp_path / "none.jsonl")},
    ):  # fmt: skip
        with pytest.raises(NotForUs):
            answer("claude-code", json.dumps(hooked | change).encode(), client, fleet="team")
    for said in (b"", b"[]", b"\xff", b"[" * 100_000, b" " * 5_000_000):
        with pytest.raises(NotForUs):
            answer("claude-code", said, client, fleet="team")
    rollout = tmp_path / "rollout.jsonl"
    rollout.write_text("".join(json.dumps({"type": "compacted", "payload": {"message": text}}) + "\n" for text in ("- a\n", "")))
    with pytest.raises(NotForUs):
        answer("codex", json.dumps({"hook_event_name": "PostCompact", "transcript_path": str(rollout)}).encode(), client, fleet="team")


def test_the_hook_command_fails_open(winnow, hooked, monkeypatch):
    """Without a gateway, or with input that is none: exit code 0, nothing on standard output, a word on standard error."""
    for said in (json.dumps(hooked).encode(), b"\x00"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(said)))
        ran = winnow("hosts", "hook", "claude-code")
        assert (ran.code, ran.out) == (0, "")
        assert "winnow" in ran.err


def test_programs_are_written_out_and_nothing_is_overwritten(winnow, tmp_path):
    """All files of a program lie in one folder; one of other content is replaced only when that is asked for."""
    assert winnow("hosts", "install", "pi", "--to", str(tmp_path / "x")).code == 0
    assert sorted(p.name for p in (tmp_path / "x").iterdir()) == ["index.ts", "messages.ts", "winnow.ts"]
    assert winnow("hosts", "install", "pi", "--to", str(tmp_path / "x")).code == 0
    (tmp_path / "x" / "index.ts").write_text("mine")
    assert winnow("hosts", "install", "pi", "--to", str(tmp_path / "x")).code == 4
    assert (tmp_path / "x" / "index.ts").read_text() == "mine"
    assert winnow("hosts", "install", "pi", "--to", str(tmp_path / "x"), "--force").code == 0
    assert "session_before_compact" in (tmp_path / "x" / "index.ts").read_text()
    assert winnow("hosts", "install", "pi", "--to", str(tmp_path / "x" / "index.ts")).code == 1
    assert winnow("hosts", "install", "nobody", "--to", str(tmp_path)).code == 2


def test_programs_can_be_read_before_they_are_written(winnow):
    """`show` prints them; JSON ones are JSON."""
    for name in PROGRAMS:
        assert winnow("hosts", "show", name).code == 0
    assert json.loads(winnow("hosts", "show", "claude-code").out)["hooks"]["SessionStart"][0]["matcher"] == "compact"


def test_the_proxy_says_what_it_needs(winnow, monkeypatch):
    """No gateway, or an upstream that is no URL: one line, no traceback."""
    ran = winnow("proxy", "--upstream", "https://api.example")
    assert (ran.code, "no gateway" in ran.err) == (1, True)
    monkeypatch.setenv("WINNOW_GATEWAY_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WINNOW_API_KEY", "wnw_x")
    ran = winnow("proxy", "--upstream", "api.example")
    assert (ran.code, "base URL" in ran.err) == (1, True)
