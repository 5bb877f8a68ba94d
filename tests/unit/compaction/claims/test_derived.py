"""Values that follow from others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.compaction.claims.derived import backward_range, false_equation, number_word, reaches
from winnow.compaction.values import scaled_number


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ("255", ["152", "103"]),
        ("49", ["152", "103"]),
        ("1000", ["500", "250", "250"]),
        ("1327", ["500", "250", "250", "198", "129"]),
        ("724", ["172", "190"]),  # for two
        ("4875", ["1625"]),  # for three
        ("4875", ["1625", "3"]),
        ("4048", ["4875", "500", "198", "129"]),
        ("12.5", ["10", "2.5"]),
    ],
)
def test_what_can_be_computed_is_reached(value, numbers):
    """Sums, differences, multiples and products of an entry's numbers are derived."""
    assert reaches(scaled_number(value), numbers)


@pytest.mark.parametrize(("value", "numbers"), [("256", ["152", "103"]), ("153", ["152"]), ("490", ["480"]), ("77", [])])
def test_what_cannot_be_computed_is_not_reached(value, numbers):
    """A near miss is no derivation."""
    assert not reaches(scaled_number(value), numbers)


@given(st.lists(st.integers(1, 9_999), min_size=2, max_size=4))
def test_every_sum_is_reached(numbers):
    """The sum of two to four numbers is always reached."""
    assert reaches(scaled_number(str(sum(numbers))), [str(number) for number in numbers])


@pytest.mark.parametrize(
    "text",
    ["104 + 105 = $209", "833 - 250 = 583", "3 x 1625 = 4875", "$340 = $280 gift card + $60 card", "x = 5", "a == 7",
     "500 + gift cards 198 + 129 = 827", "1 + 2 = 3", "10 * 1.5 = 15", "33.3 + 33.3 + 33.3 = 100"],
)  # fmt: skip
def test_equations_that_hold_are_left_alone(text):
    """True equations, rounded ones, longer ones and assignments are no mistakes."""
    assert false_equation(text) is None


@pytest.mark.parametrize(("text", "value"), [("145 - 250 = 583", "-105"), ("104 + 105 = $219", "209"), ("3 x 1625 = 4975", "4875")])
def test_equations_that_do_not_hold_are_found(text, value):
    """A false equation is found, with what its left side gives."""
    found = false_equation(text)
    assert found is not None
    assert found[1] == value


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("lines 989-415", "989-415"), ("a: 166-912 / 999-920", "999-920"), ("lines 287-290", None), ("edit 422:295", "422:295"),
        ("call 555-120", None), ("ports 8080:8000", None), ("2024-05-24", None), ("12-10", None),
    ],
)  # fmt: skip
def test_a_range_that_runs_backwards_is_found(text, found):
    """Ranges of lines must rise; dates, ports and lone pairs of numbers are no such ranges."""
    assert backward_range(text) == found


def test_numbers_in_words():
    """Numbers below a hundred have their English word."""
    assert [number_word(number) for number in (0, 16, 20, 21, 99, 100, -1)] == [
        "zero",
        "sixteen",
        "twenty",
        "twenty-one",
        "ninety-nine",
        None,
        None,
    ]


@pytest.mark.parametrize("text", ["1 + " * 50_000 + "= 2", "9" * 100_000 + " = 1", "1-" * 50_000, "= " * 50_000])
def test_hostile_text_takes_no_time(text):
    """Endless chains and ranges are read in linear time."""
    false_equation(text)
    backward_range(text)
