"""The local judge fitted again without each fold."""

import pytest

from tests.harness.data import shared_data
from tests.unit.judging.evaluation.lines import data, line
from winnow.cli.eval import Fold
from winnow.cli.folding import CannotFold, folded
from winnow.cli.labelled_lines import read_data


def flipped(text: bytes, run: str) -> bytes:
    """The data with every label of one run turned round."""
    import json

    lines = [json.loads(one) for one in text.splitlines()]
    for one in lines:
        if one["run"] == run:
            for entry in one["entries"]:
                entry.update(env=1 - entry["source"], prev=0, source=1 - entry["source"], user=0)
    return b"\n".join(json.dumps(one).encode() for one in lines)


def test_a_fold_is_scored_by_a_model_that_has_not_seen_it():
    """Turning every label of a run round changes the models of the other folds, and nothing of the model of its own."""
    text = b"\n".join(shared_data("sourcebench", "dev.jsonl").read_bytes().splitlines()[:7])
    first = read_data(text).boundaries
    run = first[0].run
    plain = folded(first, Fold.RUN, seed=0, data_sha256="0" * 64, told=lambda _: None)
    turned = folded(read_data(flipped(text, run)).boundaries, Fold.RUN, seed=0, data_sha256="0" * 64, told=lambda _: None)
    models = {boundary.run: (plain.judge_of(boundary).model, turned.judge_of(boundary).model) for boundary in first}
    assert models[run][0] == models[run][1]
    assert all(one != other for name, (one, other) in models.items() if name != run)
    assert plain.id.version.endswith("/leave-one-run-out")


def test_one_fold_is_none():
    """Data of one run, or lines without a domain, cannot be folded."""
    with pytest.raises(CannotFold):
        folded(read_data(data(line(1))).boundaries, Fold.RUN, seed=0, data_sha256="0" * 64, told=lambda _: None)
    bare = read_data(data(line(1, domain=None), line(2))).boundaries
    with pytest.raises(CannotFold):
        folded(bare, Fold.DOMAIN, seed=0, data_sha256="0" * 64, told=lambda _: None)


def test_only_the_local_judge_is_fitted_here(winnow, tmp_path):
    """Folds of another judge are refused before anything is measured."""
    path = tmp_path / "data.jsonl"
    path.write_bytes(data(line(1), line(2)))
    ran = winnow("eval", "judge", str(path), "--judge", "formula", "--folds", "run")
    assert ran.code == 1
    assert "cannot be fitted here" in ran.err
