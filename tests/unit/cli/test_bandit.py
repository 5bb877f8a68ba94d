"""`winnow bandit`: levels certified, dropped or sampled on, from the losses so far."""

import importlib.util
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.cli.arm_lines import read_arms
from winnow.cli.unit_lines import BadLosses
from winnow.contracts.evaluation import read_record

LEVELS = ("--level", "mild", "--level", "bold", "--margin", "0.1")

plots = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs the extra plots")


@pytest.fixture
def look(winnow, tmp_path):
    """Look at these lines; return exit code and record, or what was said on standard error."""

    def call(*lines, words=()):
        place = tmp_path / "losses.jsonl"
        place.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        ran = winnow("bandit", str(place), *LEVELS, *words, "--json")
        return ran.code, read_record(ran.out) if ran.out else ran.err

    return call


def batch(level, lost, gained, n):
    return {"level": level, "lost": lost, "gained": gained, "n": n}


def verdicts(record):
    return [row[-1] for row in record.table("arms").rows]


def test_nothing_seen_yet(look):
    """An empty file asks for a batch of every level, and passes and fails nothing."""
    code, record = look()
    assert (code, record.title, record.gates) == (0, "Sample next, 40 units each: mild, bold", ())
    assert verdicts(record) == ["open, sample next"] * 2


def test_a_level_is_certified_and_the_bolder_one_goes_on(look):
    """A certified level is no longer sampled; a bolder one is, until it is settled; then the boldest certified one is the choice."""
    mild = batch("mild", 0, 0, 200)
    code, record = look(mild, batch("bold", 2, 0, 40))
    assert (code, verdicts(record)) == (0, ["certified", "open, sample next"])
    assert (record.subject.name, record.subject.parameters["finished"], record.gates) == ("mild", False, ())
    code, record = look(mild, batch("bold", 30, 0, 60))
    assert (code, record.title, verdicts(record)) == (0, "Operating point: mild", ["certified", "dropped"])
    code, record = look(mild, batch("bold", 0, 0, 200))
    assert (code, record.title) == (0, "Operating point: bold")


def test_the_budget_is_spent_without_a_certificate(look):
    """Then everything is kept, with exit code 6; also where more was sampled than was planned."""
    for n in (180, 5_000):
        code, record = look(batch("mild", n // 10, 0, n), words=("--budget", "200"))
        assert (code, record.title) == (6, "Operating point: keep everything (no level is certified)")


def test_units_one_by_one_are_their_batch(look):
    """Single losses and their counts give the same evidence."""
    single = [{"level": "bold", "loss": loss} for loss in [1, 0, -1, 0, 1]]
    one, other = look(*single)[1], look(batch("bold", 2, 1, 5))[1]
    assert one.table("arms") == other.table("arms")


@pytest.mark.parametrize(
    "line",
    [
        {"level": "other", "loss": 0}, {"level": "mild", "loss": 0.5}, {"level": "mild", "loss": True}, {"level": "mild", "loss": []},
        {"level": "mild"}, {"loss": 1}, batch("mild", 3, 3, 5), batch("mild", -1, 0, 5), batch("mild", 10**11, 0, 10**11), 7, "{", "\x00",
        '{"level": "mild", "loss": NaN}',
    ],
)  # fmt: skip
def test_bad_lines(look, line):
    """Another level, loss or form, and impossible counts, are refused."""
    code, said = look({"level": "mild", "loss": 0}, line)
    assert code == 1
    assert "losses.jsonl, line 2" in said or "at most" in said or "between 0 and" in said


def test_bad_plans(winnow, tmp_path):
    """A margin outside (0, 1) and a level that is named twice are refused in words."""
    place = tmp_path / "none.jsonl"
    place.write_text("")
    assert "margin" in winnow("bandit", str(place), "--level", "a", "--margin", "1").err
    assert "name of its own" in winnow("bandit", str(place), "--level", "a", "--level", "a", "--margin", ".1").err
    assert winnow("bandit", str(tmp_path / "absent"), "--level", "a", "--margin", ".1").code == 1


@given(st.binary(max_size=80))
def test_hostile_bytes(content):
    """Whatever the bytes, there are losses or a typed error."""
    try:
        list(read_arms("x", content, ("a",)))
    except BadLosses as exc:
        assert str(exc)  # noqa: PT017  either way is fine


@plots
def test_evidence_is_drawn(winnow, tmp_path):
    """The same losses give the same SVG."""
    place, drawn = tmp_path / "l.jsonl", [tmp_path / "1.svg", tmp_path / "2.svg"]
    place.write_text(json.dumps(batch("mild", 1, 0, 40)) + "\n")
    for plot in drawn:
        ran = winnow("bandit", str(place), *LEVELS, "--plot", str(plot))
        assert ran.code == 0, ran.err
    assert drawn[0].read_bytes() == drawn[1].read_bytes()
