"""Values of an entry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.compaction import text as texts
from winnow.compaction.values import MAX_VALUES, QUOTED, VALUE_CHARS, quoted, scaled_number, sums, values_of


def shown(entry: str) -> list[str]:
    return [value.shown for value in values_of(texts.normalise(texts.strip_marker(entry)))]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("- Retry with flight HAT136, $152 on 2024-05-24.", ["HAT136", "$152", "2024-05-24"]),
        ("edit src/core/fields.py line 1,474", ["src/core/fields.py", "1474"]),
        ("mail mia.li@example.com about it", ["mia.li@example.com"]),
        ("see config.yaml and fieldsName in snake_case", ["config.yaml", "fieldsName", "snake_case"]),
        ("fly LAX to SFO, the API is OK, see TODO", ["LAX", "SFO"]),
        ("The user Mia Li asked. Then she left", ["Mia", "Li"]),
        ("asked for Paris", ["Paris"]),
        ("run `npm run check` now", ["npm run check"]),
        ('says "see you" twice: "see you"', ["see you"]),
        ("at 07:00:00 or 19:30", ["07:00:00", "19:30"]),
        ("HAT136 and hat136", ["HAT136"]),
        ("nothing in here", []),
    ],
)
def test_values_are_what_a_reader_would_look_up(entry, expected):
    """Paths, names, numbers, codes, quoted strings and names in the middle of a sentence are values; plain words are none."""
    assert shown(entry) == expected


def test_ways_of_codes_and_ranges():
    """Two values that are written as one may stand apart in a text."""
    ways = {value.needle: value.ways for value in values_of("`LAX-SFO` lines 12-48 of 7, 19:00-21:30 on 2024-05-28/29, `log_a...mpeg`")}
    assert ways["lax-sfo"] == (("lax-sfo",), ("lax", "sfo"))
    assert ways["12-48"] == (("12-48",), ("12", "48"))
    assert ways["7"] == (("7",),)
    assert ways["19:00-21:30"] == (("19:00-21:30",), ("19:00", "21:30"))
    assert ways["2024-05-28/29"] == (("2024-05-28/29",), ("2024-05-28", "2024-05-29"))
    assert ways["log_a...mpeg"] == (("log_a...mpeg",), ("log_a", "mpeg"))


def test_codes_weigh_more_than_names_and_numbers():
    """A code, file name or path counts twice where no source holds it, a bare number of one or two digits not at all."""
    weights = {
        value.needle: value.weight for value in values_of('paid 152 for HAT136, 7 seats, see fields.py and src/core, "the last one"')
    }
    assert weights == {"152": 1, "hat136": 2, "7": 0, "fields.py": 2, "src/core": 2, "the last one": 1}


@given(st.text(max_size=400) | st.text(alphabet="a1_-./@`\"'$ \n", max_size=2_000))
def test_any_entry_gives_a_bounded_list_of_distinct_values(entry):
    """No text makes the extractor fail, and its values are few, short, distinct and without NUL."""
    values = values_of(texts.normalise(entry))
    assert len(values) <= MAX_VALUES
    assert len({value.needle for value in values}) == len(values)
    for value in values:
        assert 0 < len(value.shown) <= VALUE_CHARS
        assert "\0" not in value.needle
        assert value.needle == value.needle.lower()


@pytest.mark.parametrize(
    "hostile", ["1:" * 200_000, "a.-" * 150_000, "`" * 400_000, "/" * 400_000, "@" * 400_000, "1" * 400_000, "aB" * 200_000]
)
def test_hostile_entry_is_read_in_one_pass(hostile):
    """A megabyte without blanks, made of the characters that values are built from, comes back at once (the time limit is the test)."""
    assert len(values_of(hostile)) <= MAX_VALUES


def test_sums_are_of_two_or_three_numbers():
    """Sums and differences of two and three of the numbers are reached, one number alone or used twice is not."""
    reached = sums(["152", "103", "7.5"])
    assert scaled_number("255") in reached
    assert scaled_number("49") in reached
    assert scaled_number("262.5") in reached
    assert scaled_number("152") not in reached
    assert scaled_number("304") not in reached
    assert sums([]) == frozenset()


@given(st.lists(st.sampled_from(["`", "`", "a", " ", "\n", "'", '"', "b" * 199, "cc"]), max_size=24).map("".join))
def test_quoted_strings_are_those_of_the_pattern(text):
    """Splitting a line at its backticks gives what the pattern finds from left to right."""
    assert list(quoted(text)) == [match[match.lastindex] for match in QUOTED.finditer(text)]
