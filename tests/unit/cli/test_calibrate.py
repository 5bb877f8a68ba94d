"""`winnow calibrate`, `winnow plan` and `winnow reproduce`: choices, sizes and figures on the command line."""

import importlib.util
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from winnow.assurance.kinds import LossType
from winnow.cli.ladder_lines import read_ladder
from winnow.cli.unit_lines import BadLosses
from winnow.contracts.evaluation import read_record

LADDER = [
    {"level": "all", "k": 0, "n": 300, "savings": 0}, {"level": "0.4", "k": 20, "n": 300, "savings": 0.2},
    {"level": "0.5", "k": 31, "n": 300, "savings": 0.19}, {"level": "0.6", "k": 90, "n": 300, "savings": 0.4},
]  # fmt: skip

plots = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs the extra plots")


@pytest.fixture
def choose(winnow, tmp_path):
    """Calibrate on these lines; return exit code and record."""

    def call(*lines, words=()):
        place = tmp_path / "ladder.jsonl"
        place.write_text("".join(json.dumps(line) + "\n" for line in lines))
        ran = winnow("calibrate", str(place), *words, "--json")
        return ran.code, read_record(ran.out) if ran.out else ran.err

    return call


def test_the_certified_level_that_saves_most(choose):
    """The fixed sequence stops at .6; of the certified ones .4 saves most, not the last."""
    code, record = choose(*LADDER, words=("--alpha", "0.15"))
    assert (code, record.subject.name) == (0, "0.4")
    assert [row[5] for row in record.table("levels").rows] == [True, True, True, False]
    assert record.subject.parameters["guarantee"] == "fixed-n"


def test_nothing_certified_keeps_everything(choose):
    """None is an answer of its own, with exit code 6."""
    code, record = choose(*LADDER[1:], words=("--alpha", "0.01"))
    assert (code, record.subject.name) == (6, "keep everything")


@pytest.mark.parametrize(
    ("rule", "guarantee", "name"),
    [("holm", "fixed-n", "0.4"), ("bonferroni", "fixed-n", "0.4"), ("crc", "expectation", "0.5"), ("seed", "fixed-n", "0.4")],
)
def test_rules(choose, rule, guarantee, name):
    """Each rule chooses with its own guarantee class beside it."""
    _, record = choose(*LADDER, words=("--alpha", "0.15", "--rule", rule))
    assert (record.subject.name, record.subject.parameters["guarantee"]) == (name, guarantee)


def test_crc_reads_the_budget_as_it_is_written(choose):
    """An exact tie certifies: k = 26 of n = 179 at .15."""
    code, record = choose({"level": "a", "k": 26, "n": 179}, words=("--alpha", "0.15", "--rule", "crc"))
    assert (code, record.subject.name) == (0, "a")


def test_tau_from_scored_entries(choose):
    """Losses are the sourced entries that pruning below tau removes; the most pruning that keeps the budget is chosen."""
    units = [{"unit": f"u{i}", "scores": [0.9, 0.7, 0.2], "sourced": [True, True, False]} for i in range(120)]
    code, record = choose(*units, words=("--alpha", "0.05"))
    assert (code, record.subject.name) == (0, "0.25")
    graded = choose(*units, words=("--alpha", "0.6", "--type", "graded"))[1]
    assert graded.subject.name == "0.75"


def test_losses_by_unit_and_level(choose):
    """Levels in the order of the first line, savings averaged; CRC takes each unit's running maximum."""
    units = [{"unit": f"u{i}", "losses": {"mild": 0, "hard": int(i < 3)}, "savings": {"mild": 0.1, "hard": 0.3}} for i in range(200)]
    code, record = choose(*units, words=("--alpha", "0.05"))
    assert (code, record.subject.name) == (0, "hard")
    falling = [{"unit": f"u{i}", "losses": {"mild": int(i < 30), "hard": 0}} for i in range(200)]
    assert choose(*falling, words=("--alpha", "0.1", "--rule", "crc"))[0] == 6


def test_paired_levels(choose):
    """Harm and non-inferiority; the published scan for comparison, with the guarantee class none."""
    rows = [{"level": "g12", "lost": 20, "gained": 11, "n": 200}, {"level": "g6", "lost": 70, "gained": 8, "n": 200}]
    code, record = choose(*rows, words=("--alpha", "0.2", "--margin", "0.05"))
    assert (code, record.subject.name) == (6, "keep everything")
    assert choose(*rows, words=("--alpha", "0.2"))[1].subject.name == "g12"
    scan = choose(*rows, words=("--alpha", "0.2", "--margin", "0.10", "--rule", "seed"))[1]
    assert (scan.subject.name, scan.subject.parameters["guarantee"]) == ("g12", "none")


def test_a_threshold_of_trust(choose):
    """Scores and divergences give the threshold below which the pruned context is trusted."""
    units = [{"unit": f"u{i}", "score": i / 200, "diverged": i >= 150} for i in range(200)]
    code, record = choose(*units, words=("--alpha", "0.1"))
    assert code == 0
    assert record.subject.name.startswith("score < 0.8")
    assert choose(*units, words=("--alpha", "0.1", "--rule", "seed"))[1].subject.name.startswith("score <= ")


def test_what_makes_no_sense_is_said(winnow, choose, tmp_path):
    """Bad budgets, margins without pairs, rules that do not fit, and streams without a fleet."""
    for words in (("--alpha", "x"), ("--alpha", "1"), ("--alpha", "0.1", "--margin", "0.05"), ("--alpha", "0.1", "--method", "beta2")):
        code, err = choose(*LADDER, words=words)
        assert code == 1
        assert err.startswith("winnow: ")
    pairs = {"level": "a", "lost": 1, "gained": 0, "n": 60}
    assert choose(pairs, words=("--alpha", "0.1", "--rule", "crc"))[0] == 1
    assert winnow("calibrate", "--alpha", "0.1").code == 1
    assert "--fleet" in winnow("calibrate", "--alpha", "0.1", "--stream", "a").err
    assert winnow("calibrate", str(tmp_path / "none"), "--alpha", "0.1").code == 1


@pytest.mark.parametrize(
    "line",
    [
        1, [], {}, {"level": "a", "k": 5, "n": 3}, {"level": "a", "k": 0.5, "n": 3}, {"level": "", "k": 0, "n": 3},
        {"level": "a", "lost": 3, "gained": 3, "n": 5},
        {"unit": "a", "losses": {}}, {"unit": "a", "losses": {"x": "0"}}, {"unit": "a", "scores": [2], "sourced": [True]},
        {"unit": "a", "scores": [0.5], "sourced": []}, {"unit": "a", "score": 0.5, "diverged": 1},
        {"level": "a", "k": 0, "n": 3, "savings": 5},
        {"unit": "a", "losses": {"x": 0}, "savings": 3},
    ],
)  # fmt: skip
def test_a_bad_ladder_is_named_by_its_line(line):
    """Wrong kinds, impossible counts and unknown forms are refused with the number of the line."""
    with pytest.raises(BadLosses, match="f, line 1: "):
        read_ladder("f", json.dumps(line).encode(), LossType.BINARY, [0.0, 0.5])


def test_lines_of_one_ladder_agree():
    """A line without the first one's fields or levels, and a unit that comes twice, are refused."""
    for first, second in (
        ({"level": "a", "k": 0, "n": 3}, {"level": "b", "k": 0}),
        ({"unit": "a", "losses": {"x": 0}}, {"unit": "b", "losses": {"y": 0}}),
        ({"unit": "a", "losses": {"x": 0}}, {"unit": "a", "losses": {"x": 0}}),
    ):
        with pytest.raises(BadLosses, match="line 2"):
            read_ladder("f", f"{json.dumps(first)}\n{json.dumps(second)}\n".encode(), LossType.BINARY, [0.0])


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=100)
def test_any_bytes_are_a_ladder_or_refused(data):
    """Whatever the bytes, there is a ladder or a typed error."""
    try:
        read_ladder("f", data, LossType.BINARY, [0.0])
    except BadLosses as exc:
        assert str(exc)  # noqa: PT017  either way is fine


def test_a_plan_of_a_certificate(winnow):
    """263 units for 10 % where the risk is 5 %: a week at forty a day."""
    ran = winnow("plan", "certificate", "--alpha", "0.1", "--true", "0.05", "--per-day", "40")
    assert ran.code == 0, ran.err
    assert "263 units" in ran.out
    assert "7 days at 40 a day, 14 at half" in ran.out
    assert winnow("plan", "certificate", "--alpha", "0.1", "--true", "0.1").code == 1
    assert winnow("plan", "certificate", "--alpha", "0.1", "--true", "0.05", "--per-day", "0").code == 1


def test_a_plan_of_a_monitor(winnow):
    """A doubling is caught in about 330 units, nine times in ten; the same seed gives the same record; nobody beats the limit."""
    words = ("plan", "monitor", "--alpha", "0.1", "--factor", "2", "--method", "spending", "--runs", "300", "--json")
    one, two = (read_record(winnow(*words).out) for _ in range(2))
    assert one.metric("delay_p90").value == pytest.approx(327, rel=0.15)
    assert one.metrics == two.metrics
    assert one.metric("least_mean_delay").value < one.metric("delay_mean").value
    assert one.table("delays").rows[1][0] == "table (spending)"
    assert winnow("plan", "monitor", "--alpha", "0.1", "--factor", "0.5").code == 1
    assert winnow("plan", "monitor", "--alpha", "0.1", "--factor", "2", "--method", "none").code == 1


def test_published_figures(winnow, tmp_path):
    """Claims with verdicts, chosen experiments, a record; an unknown experiment is exit code 3."""
    ran = winnow("reproduce", "distil", "E3", "E14", "--out", str(tmp_path / "r"))
    assert ran.code == 0, ran.err
    assert "does not hold as worded" in ran.out
    record = read_record((tmp_path / "r" / "evaluation.json").read_bytes())
    assert {claim.name.split(".")[0] for claim in record.claims} == {"E3", "E14"}
    assert json.loads(winnow("reproduce", "sjc", "--json").out)["kind"] == "reproduction"
    assert winnow("reproduce", "distil", "E99").code == 3


@plots
def test_plots(winnow, tmp_path):
    """Levels and power are drawn."""
    place = tmp_path / "ladder.jsonl"
    place.write_text("".join(json.dumps(line) + "\n" for line in LADDER))
    ran = winnow("calibrate", str(place), "--alpha", "0.15", "--plot", str(tmp_path / "p.svg"))
    assert ran.code == 0, ran.err
    assert (tmp_path / "p.svg").read_text().lstrip().startswith("<?xml")
    ran = winnow("plan", "certificate", "--alpha", "0.1", "--true", "0.02", "--plot", str(tmp_path / "p.png"))
    assert ran.code == 0, ran.err
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
