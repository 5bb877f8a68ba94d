"""Logistic regression with signs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from winnow.judging.training.logistic import fit, platt


def made(seed: int, rows: int = 120, columns: int = 5):
    """Features on different scales, labels that depend on some of them, and weights."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)) * rng.uniform(0.1, 30.0, columns) + rng.normal(size=columns)
    z = ((x - x.mean(axis=0)) / x.std(axis=0)) @ rng.normal(size=columns)
    return x, (z + rng.logistic(size=rows) > 0).astype(float), rng.uniform(0.2, 2.0, rows)


def loss(beta, z, y, weights, strength):
    """What is minimised: weighted log losses and the penalty of all but the intercept."""
    margin = np.where(y > 0.5, 1.0, -1.0) * (z @ beta[:-1] + beta[-1])
    return strength * (weights * np.logaddexp(0.0, -margin)).sum() + 0.5 * (beta[:-1] ** 2).sum()


@pytest.mark.parametrize("seed", range(4))
def test_without_signs_it_is_the_librarys(seed):
    """With every sign free the fit is scikit-learn's on standardised features."""
    x, y, weights = made(seed)
    ours = fit(x, y, weights, [0] * x.shape[1], 0.1)
    mean, scale = x.mean(axis=0), x.std(axis=0)
    theirs = LogisticRegression(C=0.1, tol=1e-10, max_iter=5_000).fit((x - mean) / scale, y, sample_weight=weights)
    assert ours.weights * scale == pytest.approx(theirs.coef_[0], abs=1e-4)
    assert ours.logits(x) == pytest.approx(theirs.decision_function((x - mean) / scale), abs=1e-3)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), signs=st.lists(st.sampled_from([-1, 0, 1]), min_size=5, max_size=5))
def test_with_signs_it_is_the_best_there_is(seed, signs):
    """No weight has the wrong sign, and a general solver with the same bounds finds nothing better."""
    x, y, weights = made(seed)
    if y.min() == y.max():
        return
    ours = fit(x, y, weights, signs, 0.1)
    assert all(weight * sign >= 0.0 for weight, sign in zip(ours.weights, signs, strict=True))
    scale = x.std(axis=0)
    z = (x - x.mean(axis=0)) / scale
    bounds = [{1: (0, None), -1: (None, 0), 0: (None, None)}[sign] for sign in signs] + [(None, None)]
    theirs = minimize(loss, np.zeros(6), (z, y, weights, 0.1), method="L-BFGS-B", bounds=bounds)
    beta = np.append(ours.weights * scale, ours.intercept + ours.weights @ x.mean(axis=0))
    assert loss(beta, z, y, weights, 0.1) <= theirs.fun + 1e-5


def test_constant_feature_gets_no_weight():
    """A feature that never varies says nothing."""
    x, y, weights = made(1)
    x[:, 2] = 7.0
    assert fit(x, y, weights, [0] * 5, 0.1).weights[2] == 0.0


def test_separable_labels_have_a_finite_fit():
    """Labels that a feature separates do not send its weight to infinity."""
    x = np.arange(20.0).reshape(-1, 1)
    found = fit(x, (x[:, 0] > 9).astype(float), np.ones(20), [1], 0.1)
    assert np.isfinite(found.weights).all()
    assert found.weights[0] > 0.0


def test_platt_keeps_what_is_calibrated():
    """Logits that are right already get slope one and intercept zero; shifted ones get the shift back."""
    rng = np.random.default_rng(3)
    logits = rng.normal(size=20_000) * 2.0
    y = (rng.uniform(size=20_000) < 1.0 / (1.0 + np.exp(-logits))).astype(float)
    assert platt(logits, y) == pytest.approx((1.0, 0.0), abs=0.06)
    slope, intercept = platt(logits * 2.0 + 1.0, y)
    assert (slope, intercept) == pytest.approx((0.5, -0.5), abs=0.06)
