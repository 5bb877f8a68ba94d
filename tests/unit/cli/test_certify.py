"""`winnow certify`, `plan register` and the forms of a line: what was measured, said in words, and bad lines by their number."""

import importlib.util
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from winnow.assurance.kinds import Graders, Loss, Order
from winnow.assurance.samples import InvalidSample
from winnow.cli.unit_lines import BadLosses, read_units
from winnow.contracts.evaluation import read_record

plots = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs the extra plots")


def tasks(n=200, harmed=8, solved=90, **more):
    """Outcomes: the first `solved` are solved by the reference, the first `harmed` of them not by the pruned run."""
    return [{"unit": f"t{i}", "reference": i < solved, "pruned": harmed <= i < solved, **more} for i in range(n)]


@pytest.fixture
def write(tmp_path):
    """Write lines into a file; return its path."""

    def call(*lines, name="losses.jsonl"):
        place = tmp_path / name
        place.write_bytes(b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines))
        return str(place)

    return call


def sample(loss, *lines, graders=Graders.ANY):
    content = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    return read_units("f", content).sample(loss, graders=graders, order=Order.ANY, registered_n=None)


def test_a_certificate_from_outcomes(winnow, write, tmp_path):
    """Marginal and conditional harm side by side, the record in JSON, Markdown and HTML, exit code 0."""
    source = write(*tasks())
    ran = winnow("certify", source, "--alpha", "0.1", "--grader", "rule:tests", "--compressor", "openclaw:1", "--out", str(tmp_path / "c"))
    assert ran.code == 0, ran.err
    assert "Over all 200 trajectories, 8 (4 %)" in ran.out
    assert "Of the 90 the reference solves: 8.889 %" in ran.out
    record = read_record((tmp_path / "c" / "evaluation.json").read_bytes())
    assert (record.certificate.n, record.certificate.k, record.certificate.verdict) == (200, 8, "certified")
    assert record.certificate.certificate_id is None
    assert record.table("bounds") is not None
    guarantee, fresh = (row[2] for row in record.table("coverage").rows)
    assert guarantee >= 0.95 > fresh
    assert {p.name for p in (tmp_path / "c").iterdir()} == {"evaluation.json", "evaluation.md", "evaluation.html"}
    assert record.data[0].source == "losses.jsonl"


def test_unproven_and_breached_end_with_six(winnow):
    """Computed and not certified: exit code 6, and the record says which."""
    for counts, verdict in (("42/500", "unproven"), ("90/500", "breached")):
        ran = winnow("certify", "--counts", counts, "--alpha", "0.1", "--json")
        assert ran.code == 6
        assert json.loads(ran.out)["certificate"]["verdict"] == verdict


def test_domains_are_held_out(winnow, write):
    """Where lines name a domain, each is held out once, beside random blocks of its size."""
    lines = tasks(120, 5, 60, domain="a") + [{**t, "unit": f"b{i}"} for i, t in enumerate(tasks(120, 4, 60, domain="b"))]
    ran = winnow("certify", write(*lines), "--alpha", "0.1", "--json")
    table = next(t for t in json.loads(ran.out)["tables"] if t["name"] == "domains")
    assert [row[0] for row in table["rows"]] == ["a", "b"]
    assert "random blocks" in table["note"]


def test_terms_are_registered_and_kept(winnow, write, tmp_path):
    """A registration is checked for every term and for n; without one the record says that none was made."""
    source = write(*tasks())
    registered = winnow("plan", "register", "--alpha", "0.1", "--n", "200", "--out", str(tmp_path / "r"))
    assert registered.code == 0, registered.err
    place = str(tmp_path / "r" / "evaluation.json")
    kept = winnow("certify", source, "--alpha", "0.1", "--registration", place, "--json")
    assert kept.code == 0, kept.err
    assert json.loads(kept.out)["certificate"]["registration_sha256"]
    for words in (["--alpha", "0.2"], ["--alpha", "0.1", "--delta", "0.1"], ["--alpha", "0.1", "--method", "hb"]):
        ran = winnow("certify", source, *words, "--registration", place)
        assert ran.code == 1
        assert "other terms were registered" in ran.err
    fewer = winnow("certify", write(*tasks(150), name="other.jsonl"), "--alpha", "0.1", "--registration", place)
    assert "200 units were registered and 150 are here" in fewer.err
    assert "not registered" in winnow("certify", source, "--alpha", "0.1").out


def test_the_ladder_that_led_here_is_bound(winnow, write, tmp_path):
    """A certificate carries the calibration's ladder with its p-values and hash, and the hash of the certificate before it."""
    ladder = write({"level": "all", "k": 0, "n": 300}, {"level": "0.5", "k": 20, "n": 300}, name="ladder.jsonl")
    assert winnow("calibrate", ladder, "--alpha", "0.15", "--out", str(tmp_path / "cal")).code == 0
    words = ("certify", "--counts", "31/500", "--alpha", "0.1", "--calibration", str(tmp_path / "cal" / "evaluation.json"))
    first = winnow(*words, "--out", str(tmp_path / "one"))
    assert first.code == 0, first.err
    record = read_record(winnow(*words, "--follows", str(tmp_path / "one" / "evaluation.json"), "--json").out)
    assert record.certificate.operating_point == "0.5"
    assert record.table("levels") is not None
    assert len(record.subject.parameters["calibration_sha256"]) == len(record.subject.parameters["previous_sha256"]) == 64
    ran = winnow("certify", "--counts", "31/500", "--alpha", "0.1", "--calibration", str(tmp_path / "one" / "evaluation.json"))
    assert "no calibration" in ran.err


def test_every_form_of_a_line():
    """Numbers, losses, turns, decisions, verdicts and outcomes become the loss that was asked for."""
    assert sample(Loss.HARM_ALL, 0, True, 1, False).k == 2
    assert sample(Loss.GRADED, {"unit": "a", "loss": 0.5}, {"unit": 2, "loss": 0}).total == 0.5
    assert sample(Loss.GRADED, {"unit": "a", "losses": [0, 1]}, {"unit": "b", "losses": [1]}).values == (0.5, 1.0)
    assert sample(Loss.DECISION_HARM, {"unit": "a", "decisions": ["x", "x", "y"]}, {"unit": "b", "decisions": ["x", "y", "x"]}).values == (
        1.0,
        -1.0,
    )
    assert sample(Loss.DECISION_DIVERGENCE, {"unit": "a", "decisions": ["x", "y"]}).k == 1
    assert sample(Loss.ANY_DIVERGENCE, {"unit": "a", "losses": [0, 1, 0]}, {"unit": "b", "losses": [0, 0]}).values == (1.0, 0.0)
    votes = {"unit": "a", "verdicts": [True, False, False]}
    assert [sample(Loss.HARM_ALL, votes, graders=rule).k for rule in Graders] == [1, 0, 0]
    assert sample(Loss.OUTCOME_HARM_EXCESS, *tasks(3, 1, 2, rerun=True)).values == (1.0, 0.0, 0.0)


def test_the_form_must_carry_the_loss():
    """Decisions give no harm of outcomes, two decisions no paired harm, graded numbers no binary loss."""
    with pytest.raises(InvalidSample, match="not computed from decisions"):
        sample(Loss.HARM_ALL, {"unit": "a", "decisions": ["x", "y", "z"]})
    with pytest.raises(InvalidSample, match="three decisions"):
        sample(Loss.DECISION_HARM, {"unit": "a", "decisions": ["x", "y"]})
    with pytest.raises(InvalidSample, match="binary"):
        sample(Loss.HARM_ALL, 0.5)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"not json", "no JSON"), (b"NaN", "no JSON"), (b"[1]", "no number"), (b'{"unit": "a"}', "no number"), (b"\xff\xfe", "no JSON"),
        (b"[" * 50_000, "no JSON"), (b'{"unit": "", "loss": 0}', "`unit`"), (b'{"loss": 0}', "`unit`"),
        (b'{"unit": "u1", "loss": 0}', "comes twice"),
        (b'{"unit": "b", "loss": "0"}', "`loss`"), (b'{"unit": "b", "reference": true, "pruned": true}', "one form"), (b"1", "one form"),
        (b'{"unit": "b", "loss": 0' + b" " * 2_000_000 + b"}", "longer than"), (b'{"unit": "' + b"x" * 2_000 + b'", "loss": 0}', "`unit`"),
        (b'{"unit": true, "loss": 0}', "`unit`"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_by_its_number(line, why):
    """File, number and reason; nothing is computed from the rest."""
    with pytest.raises(BadLosses, match=r"f, line 3: ") as caught:
        read_units("f", b'{"unit": "u1", "loss": 0}\n\n' + line + b'\n{"unit": "u2", "loss": 0}\n')
    assert why in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "line",
    [
        {"unit": "a", "losses": []}, {"unit": "a", "losses": "1"}, {"unit": "a", "decisions": ["x"]}, {"unit": "a", "decisions": [1, 2]},
        {"unit": "a", "verdicts": [1]}, {"unit": "a", "reference": 1, "pruned": True}, {"unit": "a", "reference": True},
        {"unit": "a", "reference": True, "pruned": False, "rerun": 1}, {"unit": "a", "reference": True, "pruned": False, "domain": 1.5},
    ],
)  # fmt: skip
def test_a_field_of_another_kind_is_refused(line):
    """What a form is made of is checked, field by field."""
    with pytest.raises(BadLosses, match="line 1"):
        read_units("f", json.dumps(line).encode())


@given(st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=150)
def test_any_bytes_are_read_or_refused(data):
    """Whatever the bytes, there are units or a typed error."""
    try:
        read_units("f", data)
    except BadLosses as exc:
        assert str(exc)  # noqa: PT017  either way is fine


def test_what_makes_no_sense_is_said(winnow, write, tmp_path):
    """No losses, two sources, turns, too few units, a life without end, a fleet's missing grader: one line each, exit code 1."""
    source = write(*tasks())
    cases = {
        (): "in one way",
        (source, "--counts", "1/30"): "in one way",
        ("--counts", "0.1"): "write K/N",
        ("--counts", "31/30"): "31 losses in 30 units",
        ("--counts", "3/19"): "too few",
        ("--counts", "1/30", "--solved", "31"): "solves between",
        ("--stream", "harm"): "needs --fleet",
        (source, "--unit", "turn"): "not independent",
        (source, "--unit", "turn", "--turns-are-independent", "--fleet", "f"): "not stored",
        (source, "--life", "0"): "at most 366 days",
        (source, "--method", "wald"): "no method",
        (source, "--method", "wsr"): "registered",
        (source, "--judge", "x" * 300): "NAME:VERSION",
        (source, "--grader", "oracle"): "grader",
        (str(tmp_path / "none.jsonl"),): "No such file",
        (source, "--plot", "x.gif"): ".svg or .png",
        (write(name="empty.jsonl"),): "no line with a loss",
    }
    for words, why in cases.items():
        ran = winnow("certify", *words, "--alpha", "0.1")
        assert (ran.code, why in ran.err) == (1, True), (words, ran.err)
    assert winnow("certify", source, "--alpha", "1.5").code == 1
    assert "assumes independent" in winnow("certify", source, "--alpha", "0.1", "--unit", "turn", "--turns-are-independent").out


def test_names_with_controls_do_not_steer_the_terminal(winnow, write):
    """A unit or domain of control characters is data: nothing of it reaches the terminal as it is."""
    lines = [{**t, "domain": "\x1b[31mred\x07" if i % 2 else "b"} for i, t in enumerate(tasks())]
    ran = winnow("certify", write(*lines), "--alpha", "0.1")
    assert ran.code == 0, ran.err
    assert "\x1b" not in ran.out


@plots
def test_plots_are_reproducible(winnow, write, tmp_path):
    """The same losses give the same SVG, byte for byte."""
    source = write(*tasks())
    places = [tmp_path / name for name in ("a.svg", "b.svg")]
    for place in places:
        assert winnow("certify", source, "--alpha", "0.1", "--plot", str(place)).code == 0
    assert places[0].read_bytes() == places[1].read_bytes()
