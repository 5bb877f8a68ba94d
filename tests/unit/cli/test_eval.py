"""`winnow eval` on small data: figures, gates, documents, and every way to be refused."""

import json

import jsonschema
import pytest

from tests.unit.judging.evaluation.lines import data, line
from winnow.contracts.evaluation import GraderKind, json_schema, read_record


@pytest.fixture
def labelled(tmp_path):
    """A file of four labelled boundaries."""
    path = tmp_path / "data.jsonl"
    path.write_bytes(data(*(line(n, grader="model:two annotators", compressor="writer-1") for n in range(1, 5))))
    return path


def test_a_judge_is_measured(winnow, labelled, tmp_path, monkeypatch):
    """The record is valid, names data, grader and compressor, and is the file that --out writes beside Markdown and HTML.

    Where plots cannot be drawn the page says so.
    """
    monkeypatch.setattr("winnow.judging.evaluation.plots.drawable", lambda: False)
    out = tmp_path / "report"
    ran = winnow("eval", "judge", str(labelled), "--out", str(out), "--json", "--repeats", "2")
    assert ran.code == 0, ran.err
    record = read_record(ran.out)
    jsonschema.validate(json.loads(ran.out), json_schema())
    assert (out / "evaluation.json").read_text("utf-8") == ran.out
    assert (out / "evaluation.html").read_text("utf-8").startswith("<!doctype html>")
    assert "No plots: matplotlib is not installed" in (out / "evaluation.html").read_text("utf-8")
    assert "# Judge local" in (out / "evaluation.md").read_text("utf-8")
    assert (record.status, record.grader.kind, record.grader.name) == ("no_gate", GraderKind.MODEL, "two annotators")
    assert (record.compressor.name, record.data[0].source, record.data[0].n) == ("writer-1", "data.jsonl", 4)
    assert record.metric("auroc").n == 12
    assert record.metric("repeat_changed").value == 0.0
    assert record.metric("order_changed").value == 0.0
    assert record.metric("only_user_kept").value == 1.0
    assert {table.name for table in record.tables} >= {"slices", "sections", "calibration", "histogram", "sweep", "stress", "errors"}
    assert "the data has no label `correct`" in " ".join(record.warnings).lower()
    again = winnow("eval", "show", str(out / "evaluation.json"))
    assert again.code == 0
    assert "Figures by slice" in again.out


def test_gates_decide_the_exit_code(winnow, labelled):
    """A gate that is met ends with 0, one that is not with 6, one that is not understood with 1 before anything is asked."""
    plain = ("eval", "judge", str(labelled), "--repeats", "1", "--no-stress")
    met = winnow(*plain, "--gate", "auroc>=0.5")
    assert met.code == 0, met.err
    assert "status: passed" in met.out
    missed = winnow(*plain, "--gate", "auroc>=0.5", "--gate", "ece<=0")
    assert missed.code == 6
    assert "FAILED" in missed.out
    assert winnow(*plain, "--gate", "auroc").code == 1


def test_two_judges_side_by_side(winnow, labelled):
    """Against itself a judge has no difference and no disagreement; a label `correct` has an AUROC of its own."""
    lines = [line(n) for n in range(1, 5)]
    for one in lines:
        one["entries"] = [entry | {"correct": entry["n"] != 1} for entry in one["entries"]]
    labelled.write_bytes(data(*lines))
    ran = winnow("eval", "judge", str(labelled), "--against", "local", "--json", "--repeats", "1", "--no-stress")
    record = read_record(ran.out)
    assert record.metric("auroc_difference").value == 0.0
    assert record.metric("disagreement").value == 0.0
    assert record.table("disagreement").columns[3:] == ("both keep", "only this keeps", "only the other keeps", "both prune")
    assert record.metric("auroc_correct").value == 0.0, "here what has a source is wrong"
    assert record.grader.kind is GraderKind.UNSTATED


def test_options_are_taken_before_anything_is_measured(winnow, labelled):
    """Unknown judges, graders and thresholds are refused; a synthetic oracle is called that."""
    plain = ("eval", "judge", str(labelled), "--repeats", "1", "--no-stress")
    for words in (("--judge", "nobody"), ("--grader", "oracle"), ("--grader", "model:"), ("--against", "nobody")):
        ran = winnow(*plain, *words)
        assert ran.code == 1, words
        assert "Traceback" not in ran.err
    assert winnow(*plain, "--tau", "2").code == 2
    record = read_record(winnow(*plain, "--grader", "synthetic:built", "--json").out)
    assert (record.grader.kind, record.grader.name) == (GraderKind.SYNTHETIC, "built")
    assert any("by construction" in warning for warning in record.warnings)


def test_bad_data_is_named(winnow, labelled, tmp_path):
    """A bad line, a missing file and a record of the future end with 1 and say which."""
    labelled.write_bytes(labelled.read_bytes() + b"{}\n")
    ran = winnow("eval", "judge", str(labelled))
    assert ran.code == 1
    assert "line 5" in ran.err
    assert winnow("eval", "judge", str(tmp_path / "none.jsonl")).code == 1
    future = tmp_path / "future.json"
    future.write_text('{"schema_version": "2.0"}')
    ran = winnow("eval", "show", str(future))
    assert ran.code == 1
    assert "2.0" in ran.err
    assert winnow("eval", "show", str(tmp_path)).code == 1


def test_a_folder_that_cannot_be_written(winnow, labelled, tmp_path):
    """`--out` at a file is an error, not a traceback."""
    (tmp_path / "file").write_text("")
    ran = winnow("eval", "judge", str(labelled), "--repeats", "1", "--no-stress", "--out", str(tmp_path / "file"))
    assert ran.code == 1
    assert "Traceback" not in ran.err


def test_scores(winnow, labelled):
    """One line a boundary with n, p and score of each labelled entry."""
    ran = winnow("eval", "scores", str(labelled))
    rows = [json.loads(text) for text in ran.out.splitlines()]
    assert [row["id"] for row in rows] == ["b1", "b2", "b3", "b4"]
    assert [n for n, _, _ in rows[0]["scores"]] == [1, 2, 3]
    assert rows[0]["scores"][0][2] > 0.5


def test_the_schema_is_printed(winnow):
    """`winnow eval schema` prints the published schema."""
    assert json.loads(winnow("eval", "schema").out) == json_schema()
