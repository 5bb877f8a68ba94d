"""Values of a record that a later output of the same record has replaced, and the paths to what outputs say."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.compaction.analysis.boundaries import action, look, output, summary, user
from winnow.compaction.claims.json_paths import path_at
from winnow.contracts.vocabulary import FindingKind


def record(i, **fields):
    return output(i, json.dumps({"user_id": "mia_li_3668", **fields}), tool="get_user")


BEFORE, AFTER = record(1, balance=327, seats=40), record(5, balance=129, seats=40)


def told(entry, *messages):
    (one,) = look(summary(entry), *messages).entries
    return [(found.claim, found.said, found.key, found.message) for found in one.findings if found.kind is FindingKind.CONTRADICTED]


def test_an_older_value_of_the_same_record_is_contradicted():
    """A balance that a later output of the same user replaced is told with the latest one and its path."""
    assert told("`mia_li_3668` has a balance of 327", BEFORE, action(3, "[tool call] pay: {}"), AFTER) == [("327", "129", "balance", 5)]


@pytest.mark.parametrize(
    ("entry", "messages"),
    [
        ("`mia_li_3668` has a balance of 129", (BEFORE, AFTER)),
        ("`mia_li_3668` had a balance of 327 before", (BEFORE, AFTER)),
        ("`mia_li_3668`: balance 327 -> 129", (BEFORE, AFTER)),
        ("A balance of 327 is enough", (BEFORE, AFTER)),
        ("`mia_li_3668` has 40 seats", (BEFORE, AFTER)),
        ("`mia_li_3668` has a balance of 327", (BEFORE,)),
        ("`mia_li_3668` has a balance of 327", (BEFORE, AFTER, user(6, "set my balance to 327 again"))),
        ("HAT136 has 9 free seats", (output(1, '{"flight_number": "HAT136", "date": "2024-05-20", "free_seats": 19}'),
                                     output(3, '{"flight_number": "HAT136", "date": "2024-05-21", "free_seats": 14}'))),
        ("HAT136 has 19 free seats", (output(1, '{"flight_number": "HAT136", "date": "2024-05-20", "free_seats": 19}'),
                                      output(3, '{"flight_number": "HAT136", "date": "2024-05-21", "free_seats": 14}'))),
        ("`a_1` has count 10", (output(1, '[{"id": "a_1", "count": 10}, {"id": "a_1", "count": 12}]'), output(2, "{}"))),
    ],
)  # fmt: skip
def test_what_is_latest_past_or_of_another_record_is_left_alone(entry, messages):
    """The latest value, the past, other days, other fields, lists of one output, and what a user asks for afterwards are no mistakes."""
    assert [found for found in told(entry, *messages) if found[2].endswith(("balance", "seats", "count"))] == []


@pytest.mark.parametrize(
    ("text", "value", "path"),
    [
        ('{"a": [{"price": 152, "x": {"y": "hello"}}, {"price": 158}], "b": "q, {z"}', "158", "a[1].price"),
        ('{"a": [{"price": 152, "x": {"y": "hello"}}, {"price": 158}], "b": "q, {z"}', "hello", "a[0].x.y"),
        ('{"a": [{"price": 152, "x": {"y": "hello"}}, {"price": 158}], "b": "q, {z"}', "q, {z", "b"),
        ("[[1, 22], [333]]", "333", "[1][0]"),
        ("plain 22", "22", None),
        ("] 22", "22", None),
    ],
)  # fmt: skip
def test_the_path_to_a_value(text, value, path):
    """Keys and positions lead to what stands at an offset; a text that is no JSON has no path."""
    assert path_at(text, text.index(value)) == path


@given(st.text(alphabet='{}[]",: \\ab1', max_size=80), st.integers(0, 90))
def test_any_text_has_a_path_or_none(text, at):
    """Broken JSON never raises."""
    assert path_at(text, at) is None or path_at(text, at)


@pytest.mark.parametrize("hostile", ["[" * 100_000, '{"a":' * 50_000, '"' * 200_000, '{"id": "a_1", "v": 1}' * 9_000, "{" + "[]," * 90_000])
def test_hostile_records_are_read_in_linear_time(hostile):
    """Deep, broken and endless records come back within the time limit."""
    assert path_at(hostile, len(hostile)) is None or hostile
    assert look(summary("`a_1` has v 22"), output(1, hostile), output(2, hostile)).entries
