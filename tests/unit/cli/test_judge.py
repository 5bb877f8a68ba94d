"""`winnow judge`: one line in, one line out; a bad line costs only itself."""

import io
import json
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness import shared_data
from winnow.cli import boundary_lines
from winnow.cli.boundary_lines import BadLine, read_lines

CANDIDATE = "## Decisions\n- Flight `HAT136` costs $152\n- She will probably take it\n"
LINE = {
    "id": "run#1", "run": "run", "boundary": 1, "host": "openclaw", "task": "Help customers.",
    "previous_summary": None, "candidate_summary": CANDIDATE,
    "history": [{"i": 4, "kind": "environment", "tool": "search", "text": '{"flight_number": "HAT136", "price": 152}'}],
    "retained": [], "entries": [{"n": 1, "label": "ignored"}],
}  # fmt: skip


@pytest.fixture
def judge(winnow, tmp_path):
    """Judge these lines; return what the command did and the results."""

    def call(*lines: object, words: tuple[str, ...] = ()):
        source, target = tmp_path / "boundaries.jsonl", tmp_path / "scores.jsonl"
        raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        source.write_bytes(b"".join(line + b"\n" for line in raw))
        ran = winnow("judge", str(source), "--out", str(target), *words)
        return ran, [json.loads(line) for line in target.read_text().splitlines()] if target.exists() else None

    return call


def test_a_line_is_judged_into_the_promised_form(judge):
    """Exactly these fields, spans in UTF-8 bytes, a score and a verdict for each entry."""
    ran, [result] = judge(LINE)
    assert (ran.code, ran.out) == (0, "")
    assert list(result) == ["id", "profile", "rules", "entries"]
    assert (result["id"], result["profile"], result["rules"]) == ("run#1", "openclaw", "winnow")
    assert [list(e) for e in result["entries"]] == [["n", "section", "text", "span", "score", "verdict", "explanation"]] * 2
    data = CANDIDATE.encode()
    assert [data[slice(*e["span"])].decode() for e in result["entries"]] == [e["text"] + "\n" for e in result["entries"]]
    sourced, unsourced = result["entries"]
    assert sourced["score"] > 0.5 > unsourced["score"]
    assert (sourced["verdict"], unsourced["verdict"]) == ("sourced", "unsourced")
    assert "#4" in sourced["explanation"]


def test_a_bad_line_is_named_by_its_number_and_the_rest_is_judged(judge):
    """Each bad line is told with its number and without its content; the code is 1; blank lines are nothing."""
    bad = [b"not json SECRET", b"[1]", b'{"id": "x"}', b"\xff\xfe", b'{"id": 7, "candidate_summary": "SECRET"}', b"{" * 50_000]
    ran, results = judge(LINE, *bad, b"", b"  ", LINE | {"id": "last"})
    assert ran.code == 1
    assert [r["id"] for r in results] == ["run#1", "last"]
    for number in range(2, 2 + len(bad)):
        assert f"line {number}: " in ran.err
    assert "line 8" not in ran.err
    assert "SECRET" not in ran.err


def test_messages_of_a_wrong_form_name_the_field(judge):
    """The place of the mistake is said."""
    ran, _ = judge(LINE | {"history": [{"i": 0, "kind": "nobody", "text": "x"}]})
    assert "history.0.kind" in ran.err


def test_what_is_no_summary_has_no_entries(judge):
    """An error text is not judged."""
    _, [result] = judge(LINE | {"candidate_summary": "Error generating summary: 500"})
    assert result["entries"] == []


def test_rules_and_profile_are_the_callers_choice(judge):
    """`published` judges bullets under the five headings alone; a profile that is given is used."""
    prose = LINE | {"candidate_summary": "Prose before.\n\n" + CANDIDATE}
    _, [published] = judge(prose, words=("--rules", "published"))
    assert (published["rules"], [e["n"] for e in published["entries"]]) == ("published", [1, 2])
    _, [codex] = judge(prose, words=("--profile", "codex"))
    assert codex["profile"] == "codex"


def test_an_entry_carried_from_the_previous_summary_is_explained(judge):
    """M is a source, and the explanation names its entry."""
    _, [result] = judge(LINE | {"previous_summary": CANDIDATE, "history": []})
    assert "previous summary" in result["entries"][0]["explanation"]


def test_the_same_file_gives_the_same_bytes(judge, tmp_path):
    """Judging is deterministic."""
    judge(LINE)
    first = (tmp_path / "scores.jsonl").read_bytes()
    judge(LINE)
    assert (tmp_path / "scores.jsonl").read_bytes() == first


def test_pipes_work_on_both_ends(winnow, monkeypatch):
    """`-` is standard input, and for --out standard output."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + json.dumps(LINE).encode())))
    ran = winnow("judge", "-", "--out", "-")
    assert (ran.code, json.loads(ran.out)["id"]) == (0, "run#1")


def test_a_candidate_event_is_a_line_too(judge):
    """What was captured from the bus can be judged as it is."""
    event = {"fleet": "default", "boundary_id": "7d0b1c52-8f6e-5a9d-b1a4-2f7c6e1d9a30", "run": "r", "index": 2, "candidate": CANDIDATE}
    _, [result] = judge(event)
    assert result["id"] == "7d0b1c52-8f6e-5a9d-b1a4-2f7c6e1d9a30"


def test_a_missing_input_leaves_no_output(winnow, tmp_path):
    """A file that is not there is told, and nothing is written."""
    ran = winnow("judge", str(tmp_path / "missing"), "--out", str(tmp_path / "out"))
    assert ran.code == 1
    assert "No such file" in ran.err
    assert not list(tmp_path.glob("*out*"))


def test_an_output_that_cannot_be_written_is_told(winnow, tmp_path):
    """A folder that is not there is no traceback."""
    source = tmp_path / "in"
    source.write_text(json.dumps(LINE))
    ran = winnow("judge", str(source), "--out", str(tmp_path / "missing" / "out"))
    assert ran.code == 1
    assert "missing" in ran.err


def test_an_old_result_stays_whole_until_the_new_one_is(winnow, tmp_path, monkeypatch):
    """An interrupted run leaves the file of the last one, and no other."""
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text(json.dumps(LINE))
    target.write_text("old\n")
    monkeypatch.setattr("winnow.cli.judge._result", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
    assert winnow("judge", str(source), "--out", str(target)).code == 130
    assert target.read_text() == "old\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out"]


def test_a_line_above_the_limit_costs_only_itself(monkeypatch):
    """A line that is too long is refused without being parsed, and the next one is read from its start."""
    monkeypatch.setattr(boundary_lines, "LINE_BYTES", 200)
    short = json.dumps({"id": "a", "candidate_summary": "- x"}).encode()
    found = list(read_lines(io.BytesIO(b"x" * 1000 + b"\n" + short + b"\n" + b"y" * 1000)))
    assert [number for number, _ in found] == [1, 2, 3]
    assert [isinstance(line, BadLine) for _, line in found] == [True, False, True]


def test_a_line_exactly_at_the_limit_is_read(monkeypatch):
    """The limit is inclusive and does not count the line end."""
    short = json.dumps({"id": "a", "candidate_summary": "- x"}).encode()
    monkeypatch.setattr(boundary_lines, "LINE_BYTES", len(short) + 1)
    assert [isinstance(line, BadLine) for _, line in read_lines(io.BytesIO(short + b"\n" + short))] == [False, False]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_any_bytes_are_lines_or_bad_lines(data):
    """Whatever the file holds, each line that is not blank is a boundary or an error, and line numbers are those of an editor."""
    found = list(read_lines(io.BytesIO(data)))
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert [number for number, _ in found] == [n for n, line in enumerate(lines, 1) if line.strip()]


def test_labelled_boundaries_are_judged_with_the_entries_of_their_labels(winnow, tmp_path):
    """All entries of the labelled data come out with the same numbers, sections and texts, profile detected."""
    source = shared_data("sourcebench", "dev.jsonl")
    ran = winnow("judge", str(source), "--out", str(tmp_path / "out"))
    assert ran.code == 0
    results = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    labelled = [json.loads(line) for line in source.read_text().splitlines()]
    assert [r["id"] for r in results] == [line["id"] for line in labelled]
    assert {r["profile"] for r in results} == {"openclaw"}
    for result, line in zip(results, labelled, strict=True):
        assert [(e["n"], e["section"], e["text"]) for e in result["entries"]] == [
            (e["n"], e["section"], e["text"]) for e in line["entries"]
        ]
        assert all(0 <= e["score"] <= 1 for e in result["entries"])
