"""Features equal their plain definition, on real boundaries and on made-up ones."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.compaction.analysis import plain
from tests.unit.compaction.analysis.boundaries import action, dev, look, output, summary, user
from winnow.compaction.features import CARRY_FLOOR, DECIMALS, STORED
from winnow.contracts.vocabulary import MessageKind

#: Every n-th boundary of the development set: the plain definition takes a tenth of a second each.
EVERY = 9
SAME = (
    "novel_pass", "env_only", "env_mass", "new_agent", "new_user", "bg_prev", "bg_task", "bg_env", "val2_env", "val2_orph", "val_cooc",
    "val_near", "val_unit", "val_task", "rec_id", "told_pairs", "field_share", "out_fits", "out_codes", "unheld", "prev_stretch",
    "prev_strict", "prev_dice", "prev_covered", "lead", "obs", "modal", "imper",
)  # fmt: skip
SPEAKERS = {MessageKind.ENVIRONMENT: "E", MessageKind.USER: "U", MessageKind.ACTION: "A"}


def compare(found, expected) -> None:
    for entry, plainly in zip(found.entries, expected, strict=True):
        assert tuple(entry.features) == STORED
        assert all(math.isfinite(value) and value == round(value, DECIMALS) for value in entry.features.values())
        for name in SAME:
            if plainly[name] is not None:
                assert entry.features[name] == pytest.approx(plainly[name], abs=1e-6), (name, entry.text)
        assert (entry.features["carry"] > CARRY_FLOOR) == plainly["carried"], entry.text


def test_features_are_the_plain_ones_on_real_boundaries():
    """Indexed features equal the plain definition on the development set, for every boundary of the sample in plain ASCII."""
    compared = 0
    for boundary in dev()[::EVERY]:
        line, messages = boundary.line, boundary.messages
        previous = [] if boundary.previous is None else [entry.text for entry in boundary.previous.entries]
        texts = [line["task"], *(message.text for message in messages), *previous, *(entry.text for entry in boundary.parsed.entries)]
        if not all(text.isascii() for text in texts):
            continue
        expected = plain.features(
            [entry.text for entry in boundary.parsed.entries],
            task=line["task"],
            previous=previous,
            spoken=[(SPEAKERS[message.kind], message.text) for message in messages],
        )
        compare(boundary.analyse(), expected)
        compared += len(expected)
    assert compared > 40


PIECES = st.sampled_from(
    ["HAT136", "flight", "flights", "Flight", "$152", "1,474", "5", "15", "1.5", "src/core/main.py", "fieldsName", "snake_case", "the",
     "is", "already", "was", "refused", "need", "to", "LAX-SFO", "lax", "sfo", "3-7", "3", "7", "07:30", "07:30:00", "`a b`",
     "x" * 40, ",", ".", "\n", "  ", ":", "(", "[x]", "check", "TODO", "2024-05-24", "zeta-44", "error"]
)  # fmt: skip
TEXT = st.lists(PIECES, max_size=60).map(" ".join)
LINE = st.lists(PIECES.filter(lambda piece: piece != "\n"), min_size=1, max_size=14).map(lambda pieces: "zebra " + " ".join(pieces))


@settings(max_examples=60)
@given(
    entries=st.lists(LINE, min_size=1, max_size=4),
    earlier=st.lists(LINE, max_size=3),
    task=TEXT,
    spoken=st.lists(st.tuples(st.sampled_from(["environment", "action", "user"]), TEXT), max_size=6),
)
def test_features_are_the_plain_ones_on_any_text(entries, earlier, task, spoken):
    """Indexed features equal the plain definition for texts made of pieces that meet, part and repeat at every boundary."""
    make = {"environment": output, "action": action, "user": user}
    messages = [make[kind](i, text) for i, (kind, text) in enumerate(spoken)]
    parsed, previous = summary(*entries), summary(*earlier) if earlier else None
    expected = plain.features(
        [entry.text for entry in parsed.entries],
        task=task,
        previous=[] if previous is None else [entry.text for entry in previous.entries],
        spoken=[(SPEAKERS[MessageKind(who)], text) for who, text in spoken if text],
    )
    compare(look(parsed, *messages, task=task, previous=previous), expected)
