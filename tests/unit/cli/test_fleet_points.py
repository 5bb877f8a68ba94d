"""Named thresholds, before any database is asked."""

import json

import pytest


def test_points_are_those_of_the_shipped_model(winnow):
    """Two points ship: the data's own, and the one with the published judge's recall, which prunes more."""
    ran = winnow("fleet", "points", "--json")
    points = [json.loads(line) for line in ran.out.splitlines()]
    assert [(point["point"], point["judge"]) for point in points] == [("default", "local"), ("published-recall", "local")]
    assert 0 < points[0]["tau"] < points[1]["tau"] < 1
    assert "published-recall" in winnow("fleet", "points").out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--point", "nobody"), 3), (("--point", "default", "--tau", "0.4"), 2), (("--point", "default", "--judge", "jev"), 2),
        (("--tau", "nan"), 2), (("--tau", "1.1"), 2), (("--tau", "-inf"), 2),
    ],
)  # fmt: skip
def test_f11_a_threshold_that_is_none_is_refused(winnow, words, code):
    """F11: what is no number from 0 to 1, no name of a point, or two things at once is refused before anything is changed."""
    assert winnow("fleet", "set-mode", "acme", "enforce", *words).code == code
