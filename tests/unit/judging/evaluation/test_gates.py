"""Gates as people write them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winnow.contracts.evaluation import Metric
from winnow.judging.evaluation.gates import BadGate, Condition

METRICS = [
    Metric(name="auroc", value=0.9, n=1),
    Metric(name="auroc", slice="section=Open TODOs", value=0.8, n=1),
    Metric(name="stress_kept", slice="digit_changed", value=None, n=0),
]


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("auroc>=0.9", True),
        ("auroc >= 0.91", False),
        ("auroc.section=Open TODOs>=0.8", True),
        ("auroc.section=Open TODOs <= .79", False),
        ("auroc.all<=1e0", True),
        ("stress_kept.digit_changed<=0.06", False),
    ],
)
def test_gates(text, passed):
    """A gate names a figure and perhaps its slice; what was not measured passes none."""
    assert Condition.parse(text).on(METRICS).passed is passed


@pytest.mark.parametrize(
    "text", ["", "auroc", "auroc>0.9", "auroc>=", "auroc>=x", "auroc>=nan", "auroc>=inf", ">=0.9", "AUROC>=0.9", "a" * 999]
)
def test_what_is_no_gate_is_refused(text):
    """A gate that is not understood is an error, not a pass."""
    with pytest.raises(BadGate):
        Condition.parse(text)


def test_a_misspelt_figure_is_refused_with_what_is_near():
    """A gate on a figure that does not exist ends with the names that are near it."""
    with pytest.raises(BadGate, match="auroc"):
        Condition.parse("auroc.section=Open TODO>=0.9").on(METRICS)


@settings(max_examples=50)
@given(st.text())
def test_no_text_makes_the_parser_fail(text):
    """Any text is a gate or the one error."""
    try:
        Condition.parse(text)
    except BadGate:
        assert True
