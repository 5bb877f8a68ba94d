"""`winnow judge-train`."""

import json

from tests.unit.judging.evaluation.lines import data, line
from winnow.compaction.features import FEATURES_VERSION
from winnow.contracts.events import sha256
from winnow.judging.calibration import Calibration
from winnow.judging.model import SourceModel

SECOND = {
    "boundary": 2,
    "previous_summary": "## Decisions\n\n- take HAT136 for $152\n- the lounge is open until ten\n",
    "candidate_summary": "## Decisions\n\n- the lounge is open until ten\n- take HAT136 for $152\n- ask for a refund of ZZ999\n",
    "entries": [
        {"n": 1, "text": "- the lounge is open until ten", "env": 0, "prev": 1},
        {"n": 2, "text": "- take HAT136 for $152", "env": 1, "prev": 1},
        {"n": 3, "text": "- ask for a refund of ZZ999", "env": 0, "prev": 0},
    ],
}


def lines(runs: int) -> bytes:
    """So many runs of two boundaries."""
    firsts = [line(number) for number in range(1, runs + 1)]
    return data(*(one for first in firsts for one in (first, first | SECOND | {"id": first["id"] + "-2"})))


def test_trains_a_model_that_can_be_judged_with(winnow, tmp_path):
    """The file names its data, features and recipe, is the same at every training, and holds a model and the formula's calibration."""
    content = lines(6)
    (tmp_path / "data.jsonl").write_bytes(content)
    for name in ("a.json", "b.json"):
        ran = winnow("judge-train", str(tmp_path / "data.jsonl"), "--out", str(tmp_path / name))
        assert (ran.code, ran.out) == (0, "")
        assert "36 entries" in ran.err
    text = (tmp_path / "a.json").read_text()
    assert text == (tmp_path / "b.json").read_text()
    model, said = SourceModel.from_json(text), json.loads(text)
    assert (model.features_version, model.data_sha256) == (FEATURES_VERSION, sha256(content))
    assert (said["fitted_on"]["data"], said["fitted_on"]["boundaries"], said["fitted_on"]["entries"]) == ("data.jsonl", 12, 36)
    assert set(model.points) == {"default", "published-recall"}
    assert Calibration.from_json(text).slope > 0.0


def test_report_measures_the_unseen(winnow, tmp_path):
    """With --report the figures by run, the changes, the learning curve and the coefficients are printed."""
    (tmp_path / "data.jsonl").write_bytes(lines(6))
    ran = winnow("judge-train", str(tmp_path / "data.jsonl"), "--out", str(tmp_path / "model.json"), "--report")
    assert ran.code == 0
    for word in ("AUROC, reasoning", "by run", "Kept although the source was taken away", "runs trained on", "env_mass"):
        assert word in ran.out


def test_data_without_a_previous_summary(winnow, tmp_path):
    """Where no boundary has a previous summary, that head has learned nothing and prunes nothing."""
    (tmp_path / "data.jsonl").write_bytes(data(*(line(number) for number in range(1, 7))))
    assert winnow("judge-train", str(tmp_path / "data.jsonl"), "--out", str(tmp_path / "model.json")).code == 0
    model = SourceModel.from_json((tmp_path / "model.json").read_text())
    assert (set(model.prev.weights.values()), model.prev.intercept) == ({0.0}, 0.0)


def test_what_cannot_be_trained_on_is_told(winnow, tmp_path):
    """Too few runs, labels that do not tell output from previous summary, and a place that cannot be written are named."""
    place = tmp_path / "data.jsonl"
    place.write_bytes(lines(2))
    ran = winnow("judge-train", str(place), "--out", str(tmp_path / "model.json"))
    assert ran.code != 0
    assert "at least 3 are needed" in ran.err
    unasked = [line(number, entries=[{"n": 1, "text": "- take HAT136 for $152", "source": 1}]) for number in (1, 2, 3)]
    place.write_bytes(data(*unasked))
    ran = winnow("judge-train", str(place), "--out", str(tmp_path / "model.json"))
    assert ran.code != 0
    assert "env and prev" in ran.err
    place.write_bytes(lines(4))
    ran = winnow("judge-train", str(place), "--out", str(tmp_path / "nowhere" / "model.json"))
    assert ran.code != 0
    assert "nowhere" in ran.err
