"""The evaluation record: what it refuses to say, and who can read it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from winnow.contracts.evaluation import (
    Certified,
    Direction,
    EvaluationRecord,
    Gate,
    Interval,
    Metric,
    Status,
    Subject,
    Table,
    UnreadableRecord,
    json_schema,
    read_record,
)

SCHEMA = Path(__file__).parents[3] / "docs" / "evaluation.schema.json"
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def record(**more) -> EvaluationRecord:
    return EvaluationRecord(
        id=UUID(int=1), kind="judge", created_at=NOW, title="a judge", subject=Subject(kind="judge", name="local", version="1"), **more
    )


def gate(observed, threshold=0.9, direction=Direction.AT_LEAST) -> Gate:
    return Gate.judge(metric="auroc", direction=direction, threshold=threshold, observed=observed)


def test_the_published_schema_is_what_the_code_says():
    """`docs/evaluation.schema.json` does not drift from the record."""
    assert json.loads(SCHEMA.read_text()) == json_schema(), "if that is meant: winnow eval schema > docs/evaluation.schema.json"


def test_a_record_without_gates_has_passed_nothing():
    """No gate is no pass; one failed gate fails the record; what was not measured passes no gate."""
    assert record().status is Status.NO_GATE
    assert record(gates=(gate(0.9),)).status is Status.PASSED
    assert record(gates=(gate(0.95), gate(0.89))).status is Status.FAILED
    assert record(gates=(gate(None),)).status is Status.FAILED
    assert record(gates=(gate(None, direction=Direction.AT_MOST),)).status is Status.FAILED


def test_a_record_cannot_lie_about_its_gates():
    """Neither a gate that says passed against its figures nor a status that its gates do not give can be read."""
    said = json.loads(record(gates=(gate(0.5),)).to_json())
    for change in ({"status": "passed"}, {"gates": [], "status": "passed"}, {"gates": [said["gates"][0] | {"passed": True}]}):
        with pytest.raises(UnreadableRecord):
            read_record(json.dumps(said | change))


def test_a_record_is_read_as_it_was_written():
    """Written and read again it is equal, and valid by the published schema."""
    whole = record(
        metrics=(Metric(name="auroc", value=0.9, n=10, interval=Interval(lo=0.8, hi=0.95, level=0.95, method="x")),),
        gates=(gate(0.95),),
        tables=(Table(name="t", title="t", columns=("a", "b"), rows=((1, None), ("x", 0.5), (True, 3))),),
        notes=('zero \u0000, quotes " and \u2028',),
    )
    assert read_record(whole.to_json()) == whole
    jsonschema.validate(json.loads(whole.to_json()), json_schema())


@pytest.mark.parametrize("version", ["2.0", "0.9", "10.0", "x", "1", "", None, 1])
def test_an_unknown_major_version_is_refused(version):
    """A record of another major version is not read, and the error says which version this is."""
    said = json.loads(record().to_json()) | {"schema_version": version}
    with pytest.raises(UnreadableRecord):
        read_record(json.dumps(said))


def test_a_newer_minor_version_is_read():
    """Fields that a newer minor version adds are ignored."""
    said = json.loads(record().to_json()) | {"schema_version": "1.7", "invented_later": {"a": 1}}
    assert read_record(json.dumps(said)).schema_version == "1.7"


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "{}", '"x"', "NaN", "[" * 100_000, b"\xff\xfe", '{"schema_version": "1.0"}'])
def test_what_is_no_record_is_refused(text):
    """Any other text ends in one clear error."""
    with pytest.raises(UnreadableRecord):
        read_record(text)


@settings(max_examples=50)
@given(st.text() | st.binary())
def test_no_text_makes_the_reader_fail(text):
    """Whatever is read, the answer is a record or the one error."""
    with pytest.raises(UnreadableRecord):
        read_record(text)


def test_figures_are_finite_and_tables_rectangular():
    """NaN and infinity are no figures, an interval is not upside down, and every row has all cells."""
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValidationError):
            Metric(name="x", value=value, n=1)
        with pytest.raises(ValidationError):
            Table(name="t", title="t", columns=("a",), rows=((value,),))
    with pytest.raises(ValidationError):
        Interval(lo=1.0, hi=0.0, level=0.95, method="x")
    with pytest.raises(ValidationError):
        Table(name="t", title="t", columns=("a", "b"), rows=((1,),))


def test_certificates_expire_after_they_are_issued():
    """A certificate that ends before it begins, or is revoked without a cause, is refused."""
    values = {
        "verdict": "certified", "statement": "s", "loss": "l", "loss_type": "binary", "unit": "trajectory", "denominator": "all", "n": 1,
        "method": "exact binomial", "alpha": 0.1, "delta": 0.05, "issued_at": NOW,
    }  # fmt: skip
    Certified(**values, expires_at=NOW + timedelta(days=1))
    with pytest.raises(ValidationError):
        Certified(**values, expires_at=NOW)
    with pytest.raises(ValidationError):
        Certified(**values, revoked_at=NOW)


def test_every_field_of_the_schema_is_described():
    """A reader of the schema learns what each field means."""
    schema = json_schema()
    bare = [
        f"{name}.{field}"
        for name, part in [("record", schema), *schema["$defs"].items()]
        for field, value in part.get("properties", {}).items()
        if not (value.get("description") or schema["$defs"][value["$ref"].rpartition("/")[2]].get("description"))
    ]
    assert bare == []
