"""Recorded sessions become boundaries; hostile files become faults."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from winnow.cli.boundary_lines import parse_line
from winnow.client.readers import READERS, Boundary, Fault
from winnow.client.readers.session import CUTS
from winnow.contracts.vocabulary import Mode

SUMMARY = "## Goal\nShip it\n\n## Next Steps\n1. Run the suite\n"


def write(path: Path, *values: object) -> Path:
    """A file of JSON lines; bytes are written as they are."""
    path.write_bytes(b"".join(value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n" for value in values))
    return path


def read(host: str, *paths: Path) -> tuple[list[Boundary], list[Fault]]:
    """Boundaries and faults; every boundary is one that `winnow judge` and `winnow submit` take."""
    found = list(READERS[host].sessions(paths))
    made = [one for one in found if isinstance(one, Boundary)]
    for one in made:
        event = parse_line(one.line().encode()).event(fleet="default", mode=Mode.SHADOW)
        assert event.candidate == one.candidate
    return made, [one for one in found if isinstance(one, Fault)]


def said(messages) -> list[tuple[str, str]]:
    return [(m["kind"], m["text"]) for m in messages]


def claude(kind: str, uuid: str, parent: str | None, content: object, **more: object) -> dict:
    message = {"role": kind, "content": content} | ({"id": more.pop("id")} if "id" in more else {})
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s-1", "message": message, **more}


def use(call: str, tool: str = "Bash") -> dict:
    return {"type": "tool_use", "id": call, "name": tool, "input": {"command": "ls"}}


def result(call: str, text: object, **more: object) -> dict:
    return {"type": "tool_result", "tool_use_id": call, "content": text, **more}


BOUNDARY = {
    "type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "logicalParentUuid": "u3",
    "compactMetadata": {"trigger": "auto", "preTokens": 2048},
}  # fmt: skip


def test_a_claude_code_transcript_keeps_what_the_tools_said_and_strips_reminders(tmp_path):
    """Outputs are evidence without the host's reminders inside them; meta rows are notices, side chains nothing."""
    path = write(
        tmp_path / "s.jsonl",
        {"type": "file-history-snapshot"},
        claude("user", "u1", None, "Find the file"),
        claude("user", "m1", "u1", "Caveat: host words", isMeta=True),
        claude("assistant", "x1", "u1", "elsewhere", isSidechain=True),
        claude("assistant", "a1", "m1", [{"type": "thinking", "thinking": "secret"}, {"type": "text", "text": "Looking"}, use("c1")]),
        claude(
            "user", "u2", "a1",
            [result("c1", [{"type": "text", "text": "a.txt<system-reminder>be nice</system-reminder> b.txt"}, {"type": "image"}])],
        ),
        claude("assistant", "a2", "u2", [use("c2", "Task")]),
        claude("user", "u3", "a2", [result("c2", "subagent says", is_error=True)]),
        BOUNDARY,
        claude("user", "s1", "b", SUMMARY, isCompactSummary=True, timestamp="2026-07-23T00:00:05Z"),
        claude("user", "u4", "s1", "go on"),
    )  # fmt: skip
    [made], faults = read("claude-code", path)
    assert not faults
    assert (made.run, made.index, made.task, made.previous, made.candidate) == ("s-1", 1, "Find the file", None, SUMMARY)
    assert said(made.history) == [
        ("user", "Find the file"),
        ("notice", "Caveat: host words"),
        ("action", 'Looking\n[tool call] Bash: {"command": "ls"}'),
        ("environment", "a.txt b.txt"),
        ("action", '[tool call] Task: {"command": "ls"}'),
        ("environment", "subagent says"),
    ]
    assert [(m["tool"], m["origin"]) for m in made.history if m["kind"] == "environment"] == [("Bash", "observation"), ("Task", "subagent")]
    assert made.about == {"trigger": "threshold", "tokens_before": 2048, "boundary_at": "2026-07-23T00:00:05+00:00"}


def test_results_of_parallel_calls_survive_and_a_rewound_branch_does_not(tmp_path):
    """Of two calls of one model message both results are evidence, though only one is an ancestor; what was taken back is gone."""
    path = write(
        tmp_path / "s.jsonl",
        claude("user", "u1", None, "both"),
        claude("assistant", "dead", "u1", [use("c0")], id="m0"),
        claude("user", "dead2", "dead", [result("c0", "rewound")]),
        claude("assistant", "a1", "u1", [use("c1")], id="m1"),
        claude("assistant", "a2", "a1", [use("c2")], id="m1"),
        claude("user", "r1", "a1", [result("c1", "first")]),
        claude("user", "u3", "a2", [result("c2", "second")]),
        BOUNDARY,
        claude("user", "s1", "b", [{"type": "text", "text": SUMMARY}], isCompactSummary=True),
    )
    [made], _ = read("claude-code", path)
    assert [text for kind, text in said(made.history) if kind == "environment"] == ["first", "second"]


def test_a_lost_parent_and_preserved_messages(tmp_path):
    """A link to a row that is not there goes on with the row before; messages that the host preserved are retained, and later replaced."""
    keep = BOUNDARY | {"logicalParentUuid": "gone", "compactMetadata": {"preservedMessages": {"uuids": ["a1"]}}}
    path = write(
        tmp_path / "s.jsonl",
        claude("user", "u1", None, "first"),
        claude("assistant", "a1", "u1", "kept words"),
        keep,
        claude("user", "s1", "b", SUMMARY, isCompactSummary=True),
        claude("user", "u4", "s1", "second"),
        keep | {"uuid": "b2", "logicalParentUuid": "u4"},
        claude("user", "s2", "b2", SUMMARY + "- more\n", isCompactSummary=True),
    )
    (first, second), _ = read("claude-code", path)
    assert (said(first.history), said(first.retained)) == ([("user", "first")], [("action", "kept words")])
    assert (second.index, second.previous, said(second.history)) == (2, SUMMARY, [("user", "second")])
    assert [m["i"] for m in (*second.retained, *second.history)] == [1, 2]


def item(**payload: object) -> dict:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload}


def message(role: str, text: str) -> dict:
    return item(type="message", role=role, content=[{"type": "input_text", "text": text}])


def test_a_codex_rollout_unwraps_outputs_and_keeps_the_users_turns(tmp_path):
    """All forms of an output give its text; the user's turns stay beside the summary; an encrypted compaction is a mild fault."""
    path = write(
        tmp_path / "rollout-x.jsonl",
        {"type": "session_meta", "payload": {"id": "th-1"}},
        {"type": "turn_context", "payload": {"model": "gpt-9"}},
        message("user", "<environment_context>here</environment_context>"),
        message("user", "Fix it"),
        item(type="function_call", name="shell", call_id="c1", arguments='{"cmd":"ls"}'),
        item(type="function_call_output", call_id="c1", output='{"output":"a.txt","metadata":{"exit_code":2}}'),
        item(type="custom_tool_call", name="apply_patch", call_id="c2", input="*** Begin"),
        item(type="custom_tool_call_output", call_id="c2", output=[{"type": "input_text", "text": "done"}]),
        item(type="reasoning", encrypted_content="x"),
        {"type": "event_msg", "payload": {"type": "agent_message", "message": "a copy"}},
        message("user", "taken back"),
        {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
        {"timestamp": "2026-01-01T00:00:00Z", "type": "compacted", "payload": {"message": SUMMARY, "replacement_history": []}},
        {"type": "compacted", "payload": {"message": "", "replacement_history": [{"type": "compaction", "encrypted_content": "y"}]}},
    )
    [made], [fault] = read("codex", path)
    assert (made.run, made.task, made.about["compressor"]) == ("th-1", "Fix it", "gpt-9")
    assert said(made.retained) == [("user", "Fix it")]
    outputs = [m for m in made.history if m["kind"] == "environment"]
    assert [(m["text"], m["tool"], m.get("is_error", False)) for m in outputs] == [("a.txt", "shell", True), ("done", "apply_patch", False)]
    assert (fault.mild, fault.place) == (True, "rollout-x.jsonl, line 14")


def entry(kind: str, key: str, parent: str | None, **more: object) -> dict:
    return {"type": kind, "id": key, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z", **more}


@pytest.mark.parametrize("host", ["pi", "openclaw"])
def test_a_pi_session_follows_the_way_to_its_last_entry(tmp_path, host):
    """Abandoned branches are left out; what stays starts at the entry that the compaction names, also where that is no message."""
    path = write(
        tmp_path / "x.jsonl",
        {"type": "session", "version": 3, "id": "run-9", "cwd": "/w"},
        entry("message", "1", None, message={"role": "user", "content": "Add retry"}),
        entry("message", "dead", "1", message={"role": "toolResult", "toolName": "bash", "content": "abandoned"}),
        entry(
            "message", "2", "1",
            message={
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "?"}, {"type": "toolCall", "name": "bash", "arguments": {"c": 1}}],
            },
        ),
        entry(
            "message", "3", "2",
            message={"role": "toolResult", "toolCallId": "c", "toolName": "bash", "content": [{"type": "text", "text": "ok"}]},
        ),
        entry("message", "4", "3", message={"role": "bashExecution", "command": "ls", "output": "a.ts", "exitCode": 1}),
        entry("label", "5", "4", targetId="1"),
        entry("message", "6", "5", message={"role": "user", "content": [{"type": "text", "text": "now tests"}]}),
        entry("compaction", "7", "6", summary=SUMMARY, firstKeptEntryId="5", tokensBefore=50_000),
    )  # fmt: skip
    [made], faults = read(host, path)
    assert (made.host, made.run, not faults) == (host, "run-9", True)
    assert said(made.history) == [
        ("user", "Add retry"),
        ("action", '[tool call] bash: {"c": 1}'),
        ("environment", "ok"),
        ("environment", "$ ls\na.ts"),
    ]
    assert said(made.retained) == [("user", "now tests")]
    assert made.about["tokens_before"] == 50_000


def test_a_pi_session_of_version_1_has_no_ids(tmp_path):
    """Lines follow one another, and a compaction names the first entry that stays by its number in the file."""
    rows = [
        {"type": "session", "id": "run-1"},
        {"type": "message", "message": {"role": "user", "content": "first"}},
        {"type": "message", "message": {"role": "assistant", "content": "answer"}},
        {"type": "message", "message": {"role": "user", "content": "second"}},
        {"type": "compaction", "summary": SUMMARY, "firstKeptEntryIndex": 3, "tokensBefore": 9},
        {"type": "compaction", "summary": SUMMARY, "firstKeptEntryIndex": "3"},
    ]
    (first, second), _ = read("pi", write(tmp_path / "x.jsonl", *rows))
    assert (said(first.history), said(first.retained)) == ([("user", "first"), ("action", "answer")], [("user", "second")])
    assert (said(second.history), said(second.retained)) == ([], [("user", "second")])


def test_an_opencode_export_reads_tools_and_the_tail(tmp_path):
    """Outputs and errors of tools are evidence, synthetic words notices; the tail that stays is retained."""

    def exchange(key: str, role: str, *parts: dict, **info: object) -> dict:
        return {"info": {"id": key, "role": role, **info}, "parts": list(parts)}

    tool = {"type": "tool", "tool": "bash", "callID": "c"}
    path = write(
        tmp_path / "export.json",
        {
            "info": {"id": "ses_1"},
            "messages": [
                exchange("1", "user", {"type": "text", "text": "Green suite"}, {"type": "text", "text": "hidden", "ignored": True}),
                exchange(
                    "2", "assistant",
                    {"type": "text", "text": "Running"},
                    tool | {"state": {"status": "completed", "input": {"c": "t"}, "output": "3 failed"}},
                    tool | {"state": {"status": "error", "input": {}, "error": "no such file"}},
                ),
                exchange("3", "user", {"type": "text", "text": "and now?"}),
                exchange("4", "user", {"type": "compaction", "auto": True, "tail_start_id": "3"}),
                exchange("5", "assistant", {"type": "text", "text": SUMMARY}, summary=True, modelID="m", time={"created": 1.7e12}),
                exchange("6", "user", {"type": "text", "text": "Continue", "synthetic": True}),
            ],
        },
    )  # fmt: skip
    [made], faults = read("opencode", path)
    assert not faults
    assert said(made.history) == [
        ("user", "Green suite"),
        ("action", 'Running\n[tool call] bash: {"c": "t"}\n[tool call] bash: {}'),
        ("environment", "3 failed"),
        ("environment", "no such file"),
    ]
    assert said(made.retained) == [("user", "and now?")]
    assert (made.about["trigger"], made.about["compressor"]) == ("threshold", "m")


def test_openhands_events_of_both_forms(tmp_path):
    """One file an event, or one array: what a condensation forgets is history, the rest is retained."""
    events = tmp_path / "conv-1" / "events"
    events.mkdir(parents=True)
    text = [{"type": "text", "text": "12 passed"}]
    new = [
        {"kind": "SystemPromptEvent", "id": "e0"},
        {
            "kind": "MessageEvent",
            "id": "e1",
            "source": "user",
            "llm_message": {"role": "user", "content": [{"type": "text", "text": "stdin"}]},
        },
        {"kind": "ActionEvent", "id": "e2", "tool_name": "terminal", "tool_call_id": "t", "thought": [], "tool_call": {"arguments": "{}"}},
        {
            "kind": "ObservationEvent",
            "id": "e3",
            "tool_name": "terminal",
            "tool_call_id": "t",
            "observation": {"content": text, "is_error": False},
        },
        {"kind": "Condensation", "id": "e4", "forgotten_event_ids": ["e2", "e3"], "summary": "COMPLETED: parser", "summary_offset": 1},
    ]
    paths = [write(events / f"event-{i:05d}-{e['id']}.json", e) for i, e in enumerate(new)]
    [made], faults = read("openhands", *reversed(paths))
    assert (made.run, not faults) == ("conv-1", True)
    assert said(made.history) == [("action", "[tool call] terminal: {}"), ("environment", "12 passed")]
    assert said(made.retained) == [("user", "stdin")]

    old = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "stdin"}},
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "pytest", "thought": "test it"}},
        {"id": 2, "source": "agent", "observation": "run", "content": "12 passed", "extras": {"metadata": {"exit_code": 0}}},
        {"id": 3, "source": "agent", "observation": "think", "content": "my own thought"},
        {
            "id": 4,
            "action": "condensation",
            "args": {"forgotten_events_start_id": 1, "forgotten_events_end_id": 3, "summary": "COMPLETED: parser"},
        },
    ]
    [made], faults = read("openhands", write(tmp_path / "trajectory.json", old))
    assert (made.run, not faults) == ("trajectory", True)
    assert said(made.history)[:2] == [("action", 'test it\n[tool call] run: {"command": "pytest"}'), ("environment", "12 passed")]
    assert (made.history[2]["origin"], said(made.retained)) == ("echo", [("user", "stdin")])


def test_bad_lines_are_named_and_the_rest_is_read(tmp_path):
    """Each bad line has its number and none of its content; half a line at the end is mild; NUL bytes and lone surrogates pass."""
    path = write(
        tmp_path / "s.jsonl",
        b"not json SECRET\n", b"[1]\n", b"\xff\xfe\n", b'{"a":' * 50_000 + b"\n", b"\n",
        entry("message", "1", None, message={"role": "user", "content": "a\x00b \ud800 c"}),
        entry("compaction", "2", "1", summary=SUMMARY),
        b'{"type": "message", "id": "3", "mess',
    )  # fmt: skip
    [made], faults = read("pi", path)
    assert [f.place for f in faults] == [f"s.jsonl, line {n}" for n in (1, 2, 3, 4, 8)]
    assert [f.mild for f in faults] == [False] * 4 + [True]
    assert not any("SECRET" in f.text for f in faults)
    assert made.history[0]["text"] == "a\x00b \ufffd c"


def test_what_is_no_file_is_a_fault(tmp_path):
    """A folder, a file that is not there and an empty one give no boundary and no traceback."""
    for host in READERS:
        made, faults = read(host, tmp_path)
        assert (made, len(faults)) == ([], 1)
        assert read(host, tmp_path / "none")[1]
    assert read("pi", write(tmp_path / "empty.jsonl")) == ([], [])


def test_a_reminder_that_never_ends_is_text_and_costs_linear_time(tmp_path):
    """A hundred thousand openings without an end are kept as they are."""
    hostile = "<system-reminder>" * 100_000
    path = write(
        tmp_path / "s.jsonl",
        claude("assistant", "u3", None, [use("c")]),
        claude("user", "r", "u3", [result("c", hostile)]),
        BOUNDARY,
        claude("user", "s1", "b", SUMMARY, isCompactSummary=True),
    )
    [made], _ = read("claude-code", path)
    assert made.history[1]["text"] == hostile


def test_fields_of_another_type_read_as_absent(tmp_path):
    """Where a word or a number is expected, a list is none."""
    rows = [
        {"type": "response_item", "payload": {"type": [], "call_id": {}}},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": [1], "output": {"metadata": {"exit_code": []}}}},
        {"type": "message", "message": {"role": "bashExecution", "exitCode": [], "output": 7}},
        {"type": [], "message": []},
        {"id": 1, "observation": "run", "content": [], "extras": {"metadata": {"exit_code": {}}}},
    ]  # fmt: skip
    for host in ("codex", "pi", "claude-code", "openhands"):
        assert read(host, write(tmp_path / f"{host}.jsonl", *rows)) == ([], [])


def test_a_session_that_compacts_for_ever_ends_in_a_fault(tmp_path):
    """A loop of compactions costs no more than a thousand of them."""
    rows = [entry("compaction", str(i), str(i - 1) if i else None, summary=SUMMARY) for i in range(CUTS + 500)]
    made, [fault] = read("pi", write(tmp_path / "x.jsonl", *rows))
    assert (len(made), fault.place) == (CUTS, f"x.jsonl, line {CUTS + 1}")


KEYS = st.sampled_from(
    ["type", "message", "payload", "uuid", "parentUuid", "id", "parentId", "content", "role", "parts", "info", "messages", "summary",
     "isCompactSummary", "kind", "action", "observation", "args", "state", "tool_call_id", "timestamp", "output", "firstKeptEntryId"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["user", "assistant", "system", "message", "compaction", "compacted", "response_item", "function_call_output", "tool_result",
     "toolResult", "Condensation", "condensation", "ObservationEvent", "text", "tool", "", "\ud800", "\x00"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)


@pytest.mark.parametrize("host", list(READERS))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.dictionaries(KEYS, JSON, max_size=8), max_size=8))
def test_no_file_of_json_makes_a_reader_fail(tmp_path, host, rows):
    """Whatever stands in the fields, there are boundaries that Winnow takes, or faults."""
    whole = host == "opencode"
    read(host, write(tmp_path / "x.json", *([{"info": {}, "messages": rows}] if whole else rows)))
