"""Places: handles and parts of what they stand for, read back as they were written, and everything else a miss."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.contracts.errors import NotFound
from winnow.contracts.places import PLACE_CHARS, Part, Place

HANDLES = st.from_regex(r"[A-Za-z0-9_-]{22,64}", fullmatch=True)


@given(HANDLES, st.none() | st.tuples(st.sampled_from(list(Part)), st.integers(0, 10**9 - 1)))
def test_a_place_is_read_as_it_was_written(handle, part):
    """Writing a place and reading it gives the same place, of at most the stated length."""
    place = Place(handle) if part is None else Place(handle, *part)
    assert Place.parse(str(place)) == place
    assert len(str(place)) <= PLACE_CHARS
    assert place.suffix == (None if part is None else f"{part[0].value}{part[1]}")


@given(st.text(max_size=100) | st.from_regex(r"[A-Za-z0-9_-]{22,64}\.[a-z]?[0-9]*.?", fullmatch=True))
def test_anything_else_is_a_miss(text):
    """What is no place is not found; it never raises anything else."""
    with suppress(NotFound):
        assert str(Place.parse(text)).startswith(text.split(".")[0])


@pytest.mark.parametrize("text", ["x" * 30 + "\n", "x" * 30 + ".e1\n", "x" * 30 + ".e١", " " + "x" * 30, "x" * 21, "x" * 65, "x" * 10**6])
def test_near_misses(text):
    """A line end, another script's digits, a blank, a character too few or too many: a miss."""
    with pytest.raises(NotFound):
        Place.parse(text)
