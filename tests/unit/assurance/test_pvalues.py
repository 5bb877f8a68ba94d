"""p-values from integer counts: exact to the ninth digit at any n, monotone, and honest at the edges."""

import math
import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.assurance.vectors import golden, published
from winnow.assurance import pvalues
from winnow.assurance.samples import InvalidSample

FORMS = {
    "p_exact": pvalues.exact,
    "p_hb": pvalues.hoeffding_bentkus,
    "p_hoeffding_kl": pvalues.kl_hoeffding,
    "p_bentkus": pvalues.bentkus,
    "p_hb_seed": pvalues.seed,
}

units = st.integers(1, 3_000)
alphas = st.floats(0.001, 0.999)


@st.composite
def counts(draw):
    n = draw(units)
    return draw(st.integers(0, n)), n


@pytest.mark.parametrize("name", FORMS)
def test_golden_p_values_to_nine_digits_at_any_n(name):
    """Every form of the p-value agrees with the golden rows, up to 100,000 units."""
    rows = golden("p_values")["rows"]
    assert max(row["n"] for row in rows) == 100_000
    for row in rows:
        assert FORMS[name](row["k"], row["n"], row["alpha"]) == pytest.approx(row[name], rel=1e-9, abs=1e-300), row


def test_published_vectors_of_the_seed_form():
    """The seed form gives the p-values that were published for it."""
    for key, p in published("hb_p").items():
        count, _, alpha = key.partition("@")
        k, _, n = count.partition("/")
        assert pvalues.seed(int(k), int(n), float(alpha)) == pytest.approx(p, rel=5e-6)


def test_a_count_is_taken_as_a_count():
    """p(100, 7, .1) is that of seven losses: n times k/n in floats would round up to eight."""
    for row in golden("ceil_hazard"):
        assert pvalues.exact(row["k"], row["n"], row["alpha"]) == pytest.approx(row["correct"], rel=1e-9)
        assert row["naive_ceil_n_times_k_over_n"] != pytest.approx(row["correct"], rel=1e-3)
    with pytest.raises(InvalidSample, match="integer count, not a rate"):
        pvalues.exact(0.07, 100, 0.1)


def test_many_digits_against_mpmath():
    """The exact tail agrees with forty-digit arithmetic, deep in the tail and near one."""
    for k, n, alpha in ((247, 1_770, 0.2), (9_800, 100_000, 0.1), (0, 59, 0.05), (500, 1_000, 0.45), (30, 100_000, 0.001)):
        with mpmath.workdps(40):
            p = mpmath.mpf(alpha)
            term = tail = (1 - p) ** n
            for j in range(1, k + 1):
                term *= (n - j + 1) * p / (j * (1 - p))
                tail += term
        assert pvalues.exact(k, n, alpha) == pytest.approx(float(tail), rel=1e-9)


def test_hoeffding_bentkus_agrees_with_mapie():
    """An independent library gives the same p-values for the published method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of sklearn's future on import
        from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value
    for k, n, alpha in ((72, 500, 0.2), (42, 500, 0.1), (12, 300, 0.08), (0, 59, 0.05)):
        theirs = compute_hoeffding_bentkus_p_value(np.array([k / n]), n, alpha)
        assert pvalues.hoeffding_bentkus(k, n, alpha) == pytest.approx(float(np.ravel(theirs)[0]), rel=1e-9)


def test_edges():
    """Without units p is 1; 59 units without a loss certify 5 %, 58 do not."""
    assert all(form(0, 0, 0.1) == 1.0 for form in FORMS.values())
    assert pvalues.exact(0, 59, 0.05) == pytest.approx(0.0485, abs=5e-5)
    assert pvalues.exact(0, 58, 0.05) == pytest.approx(0.0510, abs=5e-5)
    assert pvalues.exact(5, 5, 0.5) == 1.0


@given(counts(), alphas, alphas)
@settings(max_examples=40)
def test_p_falls_in_alpha(kn, one, two):
    """A larger budget is never harder to certify."""
    low, high = sorted((one, two))
    for form in FORMS.values():
        assert form(*kn, high) <= form(*kn, low) * (1 + 1e-9)


@given(counts(), alphas)
@settings(max_examples=40)
def test_p_rises_in_k(kn, alpha):
    """One more loss never makes the case better."""
    k, n = kn
    for form in FORMS.values():
        assert form(max(0, k - 1), n, alpha) <= form(k, n, alpha) * (1 + 1e-9)


@given(counts(), alphas)
@settings(max_examples=40)
def test_the_exact_test_is_the_sharpest(kn, alpha):
    """The exact p is never above Bentkus's, and the seed form never below the published one."""
    assert pvalues.exact(*kn, alpha) <= pvalues.bentkus(*kn, alpha)
    assert pvalues.hoeffding_bentkus(*kn, alpha) <= pvalues.seed(*kn, alpha) + 1e-12


@pytest.mark.parametrize("bad", [(1.5, 10), (True, 10), (-1, 10), (11, 10), (1, -1), ("1", 10), (1, math.inf), (10**400, 10)])
@pytest.mark.parametrize("name", ["p_exact", "p_hb_seed", "p_bentkus"])
def test_what_is_no_count_is_refused(name, bad):
    """Rates, booleans, texts and impossible counts raise a typed error."""
    with pytest.raises(InvalidSample):
        FORMS[name](*bad, 0.1)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, math.nan, "0.1", True, None])
def test_what_is_no_budget_is_refused(alpha):
    """alpha lies strictly between 0 and 1."""
    with pytest.raises(InvalidSample, match="alpha"):
        pvalues.exact(1, 10, alpha)
