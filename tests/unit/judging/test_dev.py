"""How well the local judge does on the development set, against scikit-learn as oracle. `pytest -s` prints the figures."""

import hashlib
import json
from importlib import resources

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

from tests.harness.data import shared_data
from tests.unit.compaction.analysis.boundaries import dev, look
from tests.unit.judging.evidence import of
from winnow.contracts.vocabulary import MessageKind, Verdict
from winnow.judging.calibration import shipped
from winnow.judging.local import formula, score


@pytest.fixture(scope="module")
def judged():
    """Of every entry: sum, probability, verdict, label, boundary number, section, run, domain."""
    found = []
    for boundary in dev():
        analysis = boundary.analyse()
        scores = score(of(analysis))
        for entry, one, label in zip(analysis.entries, scores, boundary.line["entries"], strict=True):
            assert (entry.n, entry.text) == (label["n"], label["text"])
            found.append(
                {
                    "s": formula(entry.features), "p": one.p, "verdict": one.verdict, "source": label["source"], "user": label["user"],
                    "first": boundary.line["boundary"] == 1, "reasoning": label["section"] in {"Decisions", "Open TODOs"},
                    "section": label["section"], "run": boundary.line["run"], "domain": boundary.line["domain"],
                    "env": label["env"], "prev": label["prev"], "sources": entry.sources,
                }
            )  # fmt: skip
    return {name: np.array([row[name] for row in found], dtype=object if name == "sources" else None) for name in found[0]}


def auroc(judged, mask=slice(None)) -> float:
    return float(roc_auc_score(judged["source"][mask], judged["p"][mask]))


def fit(s, label) -> tuple[float, float]:
    """Slope and intercept of an unregularised logistic regression on one number."""
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1_000).fit(s.reshape(-1, 1), label)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def probability(s, slope, intercept):
    return 1 / (1 + np.exp(-(slope * s + intercept)))


def test_ranking(judged):
    """AUROC is at least 0.905 on all entries and 0.865 on reasoning entries, and no slice falls far behind."""
    everything, reasoning = auroc(judged), auroc(judged, judged["reasoning"])
    first, later = auroc(judged, judged["first"]), auroc(judged, ~judged["first"])
    print(f"\nAUROC all {everything:.3f}, reasoning {reasoning:.3f}, first {first:.3f}, later {later:.3f}")  # noqa: T201  shown by pytest -s
    for kind in ("section", "domain"):
        for name in sorted(set(judged[kind])):
            print(f"  {kind} {name}: {auroc(judged, judged[kind] == name):.3f}")  # noqa: T201  shown by pytest -s
    assert everything >= 0.905
    assert reasoning >= 0.865
    assert first >= 0.88
    assert later >= 0.87


def test_calibration_is_the_fit_on_this_data(judged):
    """The shipped coefficients are those of a fit on this very data with this very text processing."""
    data = json.loads(resources.files("winnow.judging").joinpath("calibration.json").read_text("utf-8"))
    assert data["fitted_on"]["sha256"] == hashlib.sha256(shared_data("sourcebench", "dev.jsonl").read_bytes()).hexdigest()
    slope, intercept = fit(judged["s"], judged["source"])
    print(f"\nslope {slope:.4f}, intercept {intercept:.4f}")  # noqa: T201  shown by pytest -s
    assert shipped().slope == pytest.approx(slope, abs=1e-3)
    assert shipped().intercept == pytest.approx(intercept, abs=1e-3)


def test_probabilities_mean_what_they_say(judged):
    """Leave-one-run-out, the Brier score is at most 0.105 and ten bins are off by at most 0.05 on average."""
    s, label, runs = judged["s"], judged["source"], judged["run"]
    p = np.empty(len(s))
    for run in set(runs):
        out = runs == run
        p[out] = probability(s[out], *fit(s[~out], label[~out]))
    brier = brier_score_loss(label, p)
    bins = np.minimum((p * 10).astype(int), 9)
    ece = sum(abs(p[bins == one].mean() - label[bins == one].mean()) * (bins == one).mean() for one in set(bins.tolist()))
    data = json.loads(resources.files("winnow.judging").joinpath("calibration.json").read_text("utf-8"))["fitted_on"]
    in_sample = brier_score_loss(label, judged["p"])
    print(f"\nBrier {brier:.4f} leave-one-run-out, {in_sample:.4f} in sample; ECE {ece:.3f}")  # noqa: T201  shown by pytest -s
    assert brier <= 0.105
    assert ece <= 0.05
    assert data["brier_leave_one_run_out"] == pytest.approx(brier, abs=1e-3)
    assert data["brier"] == pytest.approx(in_sample, abs=1e-3)


def test_decisions_at_one_half(judged):
    """At tau 0.5 nine of ten kept entries have a source, and nine of ten entries with a source are kept."""
    kept, label = judged["p"] >= 0.5, judged["source"] == 1
    precision, recall = label[kept].mean(), kept[label].mean()
    reasoning = judged["reasoning"]
    print(  # noqa: T201  shown by pytest -s
        f"\nprecision {precision:.3f}, recall {recall:.3f}; "
        f"reasoning {label[kept & reasoning].mean():.3f}, {kept[label & reasoning].mean():.3f}"
    )
    assert precision >= 0.9
    assert recall >= 0.88


def test_user_sourced_entries_are_mostly_that(judged):
    """Of the entries that are kept for a user turn alone, at least three quarters were said by a user, and half of those found."""
    chosen = judged["verdict"] == Verdict.USER_SOURCED
    only = (judged["user"] == 1) & (judged["source"] == 0)
    print(f"\nuser_sourced {chosen.sum()}: user {judged['user'][chosen].mean():.3f}; found {chosen[only].mean():.3f} of {only.sum()}")  # noqa: T201
    assert judged["user"][chosen].mean() >= 0.75
    assert chosen[only].mean() >= 0.5


def kept_without_source(change) -> float:
    """Share of the entries that rest on outputs alone which are still kept where `change` has taken the outputs away."""
    boundaries = dev()
    kept, total = 0, 0
    for boundary in boundaries:
        outputs = [message for message in boundary.messages if message.kind is MessageKind.ENVIRONMENT]
        messages, task = change(boundary, outputs, boundaries)
        found = look(boundary.parsed, *messages, task=task, previous=boundary.previous)
        for one, label in zip(score(of(found)), boundary.line["entries"], strict=True):
            if label["env"] and not label["prev"]:
                total += 1
                kept += one.p is not None and one.p >= 0.5
    assert total > 250
    return kept / total


def moved_into_the_task(boundary, outputs, _):
    """The outputs' texts stand in P, and no output is left."""
    rest = [message for message in boundary.messages if message not in outputs]
    return rest, "\n".join([boundary.line["task"], *(message.text for message in outputs)])


def of_another_domain(boundary, outputs, boundaries):
    """Every output is one of a run of another domain."""
    donor = next(other for other in boundaries if other.line["domain"] != boundary.line["domain"])
    strange = [message.text for message in donor.messages if message.kind is MessageKind.ENVIRONMENT]
    swapped = {message.i: strange[at % len(strange)] for at, message in enumerate(outputs)}
    return [m.model_copy(update={"text": swapped[m.i]}) if m in outputs else m for m in boundary.messages], boundary.line["task"]


@pytest.mark.parametrize(("change", "at_most"), [(moved_into_the_task, 0.10), (of_another_domain, 0.13)])
def test_entries_lose_their_source_with_the_outputs(change, at_most):
    """Where the outputs are moved into the task, or swapped for those of another domain, few entries that rested on them are kept."""
    kept = kept_without_source(change)
    print(f"\n{change.__name__}: kept {kept:.3f}")  # noqa: T201  shown by pytest -s
    assert kept <= at_most


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
