"""What reaches a terminal: nothing in untrusted text can steer it, and nothing is read as markup."""

import ast
import io
import json
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from winnow.cli import decisions, terminal
from winnow.cli.terminal import Terminal, cell, minute, one_line, plain, table

HOSTILE = "\x1b]0;title\x07\x1b[31mred\x1b[0m [bold]markup[/bold] \u202ereversed \x9b2J :smile: \u2028 \ud800"
ANYTHING = st.text(st.characters(exclude_categories=()), max_size=200)


@given(ANYTHING)
@example(HOSTILE)
@example("\r\x08\x7f\u200b\U000e0041")
def test_no_character_that_steers_a_terminal_survives(text):
    """Controls, bidirectional marks, zero-width characters and surrogates become visible; tab and newline stay."""
    shown = plain(text)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\t\n"]
    assert not re.search("[\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", shown)
    shown.encode()


@given(st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126)))
def test_ordinary_text_is_shown_as_it_is(text):
    """Printable characters are not touched."""
    assert plain(text) == text


@given(ANYTHING)
def test_two_texts_that_differ_are_not_hidden_behind_one_escape(text):
    """An escape names the character that it stands for."""
    for character in text:
        shown = plain(character)
        assert shown == character or ast.literal_eval(f'"{shown}"') == character


@given(ANYTHING, st.integers(1, 50))
def test_a_text_is_cut_before_it_is_made_visible(text, most):
    """At most `most` characters of the text are shown, and a cut is marked."""
    assert plain(text, most).endswith("…") or len(text) <= most
    assert len(one_line(text, most).splitlines()) <= 1


def printed(what, *, width=160, tty=False) -> str:
    out = io.StringIO()
    Console(
        file=out, markup=False, emoji=False, highlight=False, force_terminal=tty, width=width, color_system="standard" if tty else None
    ).print(what)
    return out.getvalue()


def test_a_cell_is_no_markup_and_no_escape():
    r"""A table cell of hostile content shows it: brackets as brackets, escape as `\\x1b`."""
    made = table("text")
    made.add_row(cell(HOSTILE))
    shown = printed(made)
    assert "[bold]markup[/bold]" in shown
    assert "\\x1b[31mred" in shown
    assert ":smile:" in shown
    assert "\x1b" not in shown


def entry(**fields: object) -> decisions.Shown:
    values = {
        "n": 1,
        "section": "Decisions",
        "text": "- one",
        "kept": True,
        "score": 0.91,
        "reason": "score",
        "explanation": "seen in output #2",
    }
    return decisions.Shown(**values | fields)


@pytest.mark.parametrize("width", [40, 80, 99, 100, 200])
def test_kept_and_pruned_are_told_apart_without_colour(width):
    """Words say what became of an entry on every width, with the heading once and the reason beside or below."""
    shown = printed(
        decisions.rendered([entry(), entry(n=2, text="- two", kept=False, score=0.12, explanation="nothing says it")], width=width),
        width=width,
    )
    lines = shown.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("keep", "prune"))] == ["keep", "prune"]
    assert sum(line.strip().startswith("Decisions") for line in lines) == 1
    assert "0.12" in shown
    assert "nothing says it" in " ".join(shown.split())


def test_a_decision_that_no_score_made_names_its_rule():
    """Pins, scaffold and inheritance are said before the judge's line."""
    assert "[pinned] seen in output #2" in printed(decisions.rendered([entry(reason="pinned")], width=160))


def test_hostile_entries_and_explanations_are_shown_harmlessly():
    """Entry, heading and explanation of hostile content print no escape of their own on a colour terminal."""
    shown = printed(decisions.rendered([entry(section=HOSTILE, text=HOSTILE, explanation=HOSTILE)], width=160), tty=True)
    assert "\x1b]0;" not in shown
    assert "\u202e" not in shown
    assert "[bold]markup[/bold]" in shown
    assert set(re.findall("\x1b\\[[0-9;]*(.)", shown)) <= {"m"}  # colours of our own only


def test_json_is_one_ascii_line_whatever_it_holds(capsys):
    """Lone surrogates survive, and nothing in it steers a terminal."""
    Terminal().json({"text": HOSTILE})
    out = capsys.readouterr().out
    assert out.isascii()
    assert out.count("\n") == 1
    assert json.loads(out) == {"text": HOSTILE}


def test_an_error_goes_to_standard_error_and_ends_with_its_code(capsys):
    """`fail` prints one message there and nothing on standard output."""
    with pytest.raises(SystemExit) as caught:
        Terminal().fail("no [such] thing\x1b[0m", terminal.ExitCode.NOT_FOUND)
    captured = capsys.readouterr()
    assert caught.value.code == 3
    assert captured.out == ""
    assert captured.err == "winnow: no [such] thing\\x1b[0m\n"


def test_no_colour_where_no_person_looks(capsys):
    """Standard output that is no terminal gets no escape sequence, and long lines are not broken."""
    Terminal().show("x" * 500)
    assert capsys.readouterr().out == "x" * 500 + "\n"


def test_a_missing_time_is_empty():
    """A time that is not there is an empty cell."""
    assert minute(None) == ""
