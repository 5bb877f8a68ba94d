"""Search over what was said: order, excerpts, hostile queries, and no more work than the texts are long."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.compaction import search as module
from winnow.compaction.search import EXCERPT_CHARS, QUERY_WORDS, excerpt, search, words_of

TEXTS = (
    "the port 3000 is taken",
    "booked: reservation QX7PLM, the port of Rotterdam",
    "readRowsFromFile in src/read_rows.py failed",
    "日本語のテキスト",
    "nothing of note",
)


def found(query: str, texts=TEXTS) -> list[int]:
    return [match.text for match in search(query, texts).found]


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("QX7PLM", [1]), ("qx7plm reservations", [1]), ("port", [0, 1]), ("port 3000", [0, 1]), ("ports", [0, 1]), ("read_rows", [2]),
        ("rows", [2]),
        ("テキスト", [3]), ("the of and", []), ("", []), ("***", []), ("zzz", []), ("\x00\ud800", []), ("3,000", [0]),
    ],
)  # fmt: skip
def test_words_are_found(query, texts):
    """By stem, by the parts of identifiers, by pairs of characters where a script has no blanks; rare words count more."""
    assert found(query) == texts


def test_rare_words_come_first():
    """A text with the rare word stands before those with the common one, and equal ones stand in the order that they were given in."""
    texts = ["common word here"] * 5 + ["common word and a rare bird"]
    assert found("common bird", texts) == [5, 0, 1, 2, 3, 4]


def test_a_long_text_is_found_by_its_best_stretch():
    """The excerpt shows the stretch that holds the words, on one line, with cuts marked."""
    text = "filler line\n" * 500 + "the needle is\x1b here\u202e\n" + "more filler\n" * 500
    (match,) = search("needle", [text]).found
    assert "the needle is\\x1b here\\u202e more filler" in match.excerpt
    assert match.excerpt.startswith("…")
    assert match.excerpt.endswith("…")
    assert len(match.excerpt) <= EXCERPT_CHARS


@given(st.text(max_size=600), st.text(max_size=30))
def test_anything_can_be_searched_for_anything(text, query):
    """No text and no query raises; what is found holds a word of the query, and its excerpt is one printable line."""
    result = search(query, [text, text[::-1]])
    assert result.complete
    for match in result.found:
        assert match.excerpt.isprintable()
        assert len(match.excerpt) <= EXCERPT_CHARS
        assert match.score > 0
    if text.strip() and words_of(text):
        assert search(text, [text]).found
    assert excerpt(text).isprintable()


def test_a_query_is_bounded():
    """A query of a megabyte is read to its limit and asks for a few words."""
    assert len(words_of(" ".join(f"w{i}" for i in range(300_000)))) == QUERY_WORDS


def test_what_is_too_much_is_said(monkeypatch):
    """Beyond the work of one search texts are left out, those with most of the words last, and the answer says so."""
    monkeypatch.setattr(module, "COUNTED_CHARS", 100)
    result = search("alpha beta", ["alpha " * 10, "alpha " * 10, "alpha beta " * 8])
    assert ([match.text for match in result.found], result.complete) == ([2], False)


@pytest.mark.serial
def test_time_grows_with_the_length():
    """Four times the text takes about four times the time, whatever it is made of."""

    def seconds(text: str) -> float:
        tries = []
        for _ in range(3):
            begun = time.process_time()
            search("needle aa ** éé", [text])
            tries.append(time.process_time() - begun)
        return min(tries)

    for unit in ("a" * 100, "needle ", "é" * 50, "*" * 100, "aa\n"):
        short, long = seconds(unit * (100_000 // len(unit))), seconds(unit * (400_000 // len(unit)))
        assert long < 12 * short + 0.01, unit
