"""How well the local judge does on the development set, on runs and domains that its model has not seen. `pytest -s` prints the figures."""

import hashlib
import json
from functools import partial
from importlib import resources
from random import Random

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from tests.harness.data import shared_data
from tests.unit.compaction.analysis.boundaries import dev
from tests.unit.judging.evidence import of
from winnow.cli.labelled_lines import read_data
from winnow.contracts.vocabulary import Verdict
from winnow.judging import calibration
from winnow.judging.evaluation.metrics import calibration_error
from winnow.judging.formula import formula
from winnow.judging.local import score
from winnow.judging.model import shipped
from winnow.judging.stress import Stress
from winnow.judging.training import recipe
from winnow.judging.training.files import model_file
from winnow.judging.training.report import cross_validated
from winnow.judging.training.rows import collect

#: Ten seconds of work stand before the first test: every boundary and its changed copies are examined, and models are fitted by fold.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def content() -> bytes:
    return shared_data("sourcebench", "dev.jsonl").read_bytes()


@pytest.fixture(scope="module")
def rows(content):
    """Natural entries, those whose source was taken away, and those of which a value is wrong."""
    return collect(read_data(content).boundaries, lambda: Random(0), findings=True, values=[partial(Random, draw) for draw in range(3)])


@pytest.fixture(scope="module")
def unseen(rows):
    """Probabilities of models that have seen nothing of an entry's run, or of its domain: weights, calibration and negatives."""
    return cross_validated(rows)


@pytest.fixture(scope="module")
def judged():
    """Of every entry: verdict, labels and classes, with the model that ships."""
    found = []
    for boundary in dev():
        analysis = boundary.analyse()
        scores = score(of(analysis))
        for entry, one, label in zip(analysis.entries, scores, boundary.line["entries"], strict=True):
            assert (entry.n, entry.text) == (label["n"], label["text"])
            kept = {name: label[name] for name in ("source", "user", "env", "prev")}
            found.append(kept | {"s": formula(entry.features), "verdict": one.verdict, "sources": entry.sources})
    return {name: np.array([row[name] for row in found], dtype=object if name == "sources" else None) for name in found[0]}


def auroc(rows, p, mask) -> float:
    return float(roc_auc_score(rows.source[mask], p[mask]))


@pytest.mark.parametrize(("way", "everything", "reasoning", "later"), [("by run", 0.968, 0.945, 0.94), ("by domain", 0.966, 0.942, 0.936)])
def test_ranking_on_the_unseen(rows, unseen, way, everything, reasoning, later):
    """AUROC on unseen runs and on unseen domains holds its floors, over all entries, reasoning entries and later boundaries."""
    p, natural = unseen[way], rows.natural
    found = [auroc(rows, p, natural & mask) for mask in (natural, rows.reasoning, rows.index > 1)]
    print(f"\n{way}: all {found[0]:.4f}, reasoning {found[1]:.4f}, later {found[2]:.4f}")  # noqa: T201  shown by pytest -s
    assert found[0] >= everything
    assert found[1] >= reasoning
    assert found[2] >= later


@pytest.mark.parametrize("way", ["by run", "by domain"])
def test_no_slice_falls_far_behind(rows, unseen, way):
    """Every section and every domain ranks at 0.92 at least."""
    for column in (rows.section, rows.domain):
        for name in set(column.tolist()):
            assert auroc(rows, unseen[way], rows.natural & (column == name)) >= 0.92, name


@pytest.mark.parametrize(("way", "at_most"), [("by run", 0.026), ("by domain", 0.024)])
def test_probabilities_mean_what_they_say(rows, unseen, way, at_most):
    """On the unseen, ten bins are off by few hundredths on average."""
    error = float(calibration_error(rows.source[rows.natural], unseen[way][rows.natural])[0])
    print(f"\n{way}: expected calibration error {error:.4f}")  # noqa: T201  shown by pytest -s
    assert error <= at_most


@pytest.mark.parametrize("way", ["by run", "by domain"])
def test_decisions_on_the_unseen(rows, unseen, way):
    """At tau 0.5 nine of ten kept reasoning entries have a source, nine of ten with one are kept, the best ranked nearly all have one."""
    mask = rows.natural & rows.reasoning
    kept, label = unseen[way][mask] >= 0.5, rows.source[mask] == 1
    print(f"\n{way}: precision {label[kept].mean():.3f}, recall {kept[label].mean():.3f}")  # noqa: T201  shown by pytest -s
    assert label[kept].mean() >= 0.92
    assert kept[label].mean() >= 0.895
    ranked = label[np.argsort(-unseen[way][mask], kind="stable")].cumsum()
    for recall, floor in ((0.642, 0.985), (0.9, 0.93)):
        at = int(np.searchsorted(ranked, recall * label.sum() - 1e-9))
        assert ranked[at] / (at + 1) >= floor


#: Share kept without a source, by the capped score: at 0.5, and at the threshold that keeps 88 % of the natural entries with a source.
FLOORS = {
    Stress.OTHER_DOMAIN: (0.07, 0.05),
    Stress.SAME_DOMAIN: (0.10, 0.06),
    Stress.INTO_TASK: (0.03, 0.015),
    Stress.PREVIOUS_SWAPPED: (0.14, 0.09),
}


@pytest.mark.parametrize("way", ["by run", "by domain"])
def test_entries_lose_their_source_with_the_change(rows, unseen, way):
    """Entries whose source was taken away are pruned, at 0.5 and at a threshold that keeps 88 % of the natural ones."""
    score = rows.score(unseen[way])
    strict = float(np.quantile(score[rows.natural & (rows.source == 1)], 0.12))
    for kind, floors in FLOORS.items():
        for tau, floor in zip((0.5, strict), floors, strict=True):
            share = float((score[(rows.change == kind) & rows.counted] >= tau).mean())
            print(f"\n{way}, tau {tau:.2f}, {kind}: kept {share:.3f}")  # noqa: T201  shown by pytest -s
            assert share <= floor, kind


@pytest.mark.parametrize("way", ["by run", "by domain"])
@pytest.mark.parametrize(("kind", "at_most"), [(Stress.DIGIT_CHANGED, 0.06), (Stress.NUMBER_SWAPPED, 0.15)])
def test_entries_with_a_wrong_value_are_pruned(rows, unseen, way, kind, at_most):
    """Of entries that say one digit, or one number, otherwise than their sources few are kept, by models that have not seen them."""
    chosen = rows.change == kind
    kept = float((rows.score(unseen[way])[chosen] >= 0.5).mean())
    print(f"\n{way}, {kind.value}: {kept:.3f} of {chosen.sum()} kept")  # noqa: T201  shown by pytest -s
    assert chosen.sum() >= 1_000
    assert kept <= at_most


#: The same at 0.5 for entries of which the source that is left in place holds no part either.
BARE_FLOORS = {Stress.OTHER_DOMAIN: 0.025, Stress.SAME_DOMAIN: 0.045, Stress.INTO_TASK: 0.01, Stress.PREVIOUS_SWAPPED: 0.09}


@pytest.mark.parametrize("way", ["by run", "by domain"])
def test_entries_that_nothing_is_left_of_are_pruned(rows, unseen, way):
    """Where neither the changed nor the remaining source holds a value or half of the words of an entry, next to none is kept."""
    score = rows.score(unseen[way])
    for kind, floor in BARE_FLOORS.items():
        chosen = (rows.change == kind) & rows.bare
        assert chosen.sum() >= 100
        assert float((score[chosen] >= 0.5).mean()) <= floor, kind


@pytest.mark.parametrize("way", ["by run", "by domain"])
@pytest.mark.parametrize(("later", "at_most"), [(True, 0.35), (False, 0.04)])
def test_first_and_later_boundaries_without_outputs(rows, unseen, way, later, at_most):
    """At 0.5 next to nothing is kept without its outputs where there is no previous summary, a third at most where there is one."""
    chosen = rows.counted & ((rows.index > 1) == later)
    for kind in (Stress.OTHER_DOMAIN, Stress.SAME_DOMAIN, Stress.INTO_TASK):
        share = float((rows.score(unseen[way])[(rows.change == kind) & chosen] >= 0.5).mean())
        print(f"\n{way}, {'later' if later else 'first'} boundaries, {kind}: kept {share:.3f}")  # noqa: T201  shown by pytest -s
        assert share <= at_most, kind


def test_shipped_model_is_the_fit_on_this_data(rows, content):
    """The file that ships is what training on this very data gives, with this very text processing."""
    said = json.loads(resources.files("winnow.judging").joinpath("model.json").read_text("utf-8"))
    assert said["fitted_on"]["sha256"] == hashlib.sha256(content).hexdigest() == shipped().data_sha256
    model = recipe.train(rows, shipped().data_sha256)
    again = json.loads(model_file(model, rows, data_name="dev.jsonl", boundaries=45, seed=0))
    for part in ("env", "prev"):
        assert said[part]["weights"] == pytest.approx(again[part]["weights"], abs=1e-4)
        assert said[part]["intercept"] == pytest.approx(again[part]["intercept"], abs=1e-4)
    assert said["calibration"] == pytest.approx(again["calibration"], abs=1e-3)
    assert said["points"] == pytest.approx(again["points"], abs=1e-3)
    assert {name: said[name] for name in ("model", "features_version", "fitted_on", "recipe")} == {
        name: again[name] for name in ("model", "features_version", "fitted_on", "recipe")
    }


def test_formula_is_calibrated_on_this_data(judged):
    """The training-free formula still ranks, and its two shipped coefficients are those of a logistic fit."""
    found = float(roc_auc_score(judged["source"], judged["s"]))
    fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1_000).fit(judged["s"].reshape(-1, 1), judged["source"])
    print(f"\nformula: AUROC {found:.3f}")  # noqa: T201  shown by pytest -s
    assert found >= 0.905
    assert calibration.shipped().slope == pytest.approx(float(fit.coef_[0, 0]), abs=1e-3)
    assert calibration.shipped().intercept == pytest.approx(float(fit.intercept_[0]), abs=1e-3)


def test_user_sourced_entries_are_mostly_that(judged):
    """Of the entries that are kept for a user turn alone, at least three quarters were said by a user, and half of those found."""
    chosen = judged["verdict"] == Verdict.USER_SOURCED
    only = (judged["user"] == 1) & (judged["source"] == 0)
    print(f"\nuser_sourced {chosen.sum()}: user {judged['user'][chosen].mean():.3f}; found {chosen[only].mean():.3f} of {only.sum()}")  # noqa: T201
    assert judged["user"][chosen].mean() >= 0.75
    assert chosen[only].mean() >= 0.5


@pytest.mark.parametrize(
    ("kind", "label", "precision", "recall"),
    [("environment", "env", 0.9, 0.74), ("previous", "prev", 0.88, 0.87), ("user", "user", 0.87, 0.55)],
)
def test_support_classes(judged, kind, label, precision, recall):
    """The classes that support an entry agree with the annotators' answers."""
    held = np.array([kind in sources for sources in judged["sources"]])
    truth = judged[label] == 1
    print(f"\n{kind}: precision {truth[held].mean():.3f}, recall {held[truth].mean():.3f}, n {held.sum()}")  # noqa: T201  shown by pytest -s
    assert truth[held].mean() >= precision
    assert held[truth].mean() >= recall
