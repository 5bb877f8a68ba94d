"""Atoms: values in one form whatever the writing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.compaction.claims.atoms import atoms_in, bare, cut, in_context
from winnow.compaction.claims.records import Words


def read(text: str) -> list[tuple[str, str]]:
    return [(atom.canon, atom.kind) for _, atom in Words(text).atoms]


@pytest.mark.parametrize(
    ("text", "atoms"),
    [
        ("on 2024-05-24", [("2024-05-24", "date")]),
        ("2024-05-28/29", [("2024-05-28", "date"), ("2024-05-29", "date")]),
        ("2024-05-15t15:00:59", [("2024-05-15", "date"), ("2024-05-15t15:00:59", "stamp"), ("15:00", "clock")]),
        ("06:30 pm", [("18:30", "clock")]),
        ("12:10am", [("00:10", "clock")]),
        ("06:00-09:00: 3 hours", [("06:00", "clock"), ("09:00", "clock"), ("3", "of hour")]),
        ("edit 287:296", [("287", "line"), ("296", "line")]),
        ("may 24", [("05-24", "day")]),
        ("24 may", [("05-24", "day")]),
        ("departs 19:00-21:30", [("19:00", "clock"), ("21:30", "clock")]),
        ("at 7 pm", [("19:00", "clock")]),
        ("at 12am", [("00:00", "clock")]),
        ("hat136", [("hat136", "code hat999")]),
        ("credit_card_4421486", [("credit_card_4421486", "code credit_card_9999999")]),
        ("costs $152.", [("152", "n3")]),
        ("152.50", [("152.5", "decimal")]),
        ("152.00", [("152", "n3")]),
        ("within 24 hours", [("24", "of hour")]),
        ("30min", [("30", "of minute")]),
        ("90%", [("90", "of percent")]),
        ("0x00400611", [("0x400611", "hex")]),
        ("#6c6c6c", [("#6c6c6c", "colour")]),
        ("line 1475", [("1475", "line")]),
        ("lines 55-105", [("55", "line"), ("105", "line")]),
        ("a%20b", []),
        ("nothing here", []),
    ],
)
def test_a_value_is_read_in_its_form(text, atoms):
    """Dates, times, quantities, codes, colours and line numbers are told apart, each in one writing."""
    assert read(text) == atoms


@given(st.text(max_size=300))
def test_any_text_is_read(text):
    """Whatever a text holds, words are cut and atoms are single values of it."""
    lowered = text.lower()
    words = cut(lowered)
    assert all(word and not word.isspace() for word in words)
    assert all(len(bare(word)) <= len(word) for word in words)
    assert all(atom.canon and atom.kind for _, atom in Words(lowered).atoms)


_WORDS = st.sampled_from(
    ["may", "24", "12:", "line", "lines", "55-60", "and", "7", "pm", "3", "days", "2024-05-28/29", "hat136", "\x01", "%", "64-bit", "x"]
)


@given(st.lists(_WORDS, max_size=24).map(" ".join))
def test_atoms_are_those_of_each_word_in_its_place(text):
    """What is read once for each distinct word, and again only where a neighbour may change it, is what each word says where it stands."""
    words = Words(text)
    plain = [(at, atom) for at, word in enumerate(cut(text)) if (own := atoms_in(word)) for atom in in_context(words.words, at, own)]
    assert words.atoms == plain
    assert set(words.values_at(slice(None))) == {atom for _, atom in plain}
