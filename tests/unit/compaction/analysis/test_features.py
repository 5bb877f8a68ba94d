"""Features equal their plain definition, on real boundaries and on made-up ones."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.compaction.analysis import plain
from tests.unit.compaction.analysis.boundaries import action, dev, look, output, summary, user
from winnow.compaction.features import CARRY_FLOOR, NAMES
from winnow.contracts.vocabulary import MessageKind

#: Every n-th boundary of the development set: the plain definition takes a tenth of a second each.
EVERY = 9
SAME = (
    "novel_pass", "cov_pass", "env_only", "cov_env", "cov_prev", "cov_task", "cov_user", "cov_act", "bg_prev", "bg_user", "bg_non",
    "val2_env", "val2_orph", "val_cooc", "obs", "modal", "imper",
)  # fmt: skip


def compare(found, expected) -> None:
    for entry, plainly in zip(found.entries, expected, strict=True):
        assert tuple(entry.features) == NAMES
        assert all(math.isfinite(value) for value in entry.features.values())
        for name in SAME:
            assert entry.features[name] == pytest.approx(plainly[name], abs=1e-9), (name, entry.text)
        assert (entry.features["carry"] > CARRY_FLOOR) == plainly["carried"], entry.text
        if entry.features["carry"] == 0.0:
            assert entry.features["cov_unit"] == pytest.approx(plainly["cov_unit_best"], abs=1e-9)


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
            outputs=[message.text for message in messages if message.kind is MessageKind.ENVIRONMENT],
            users=[message.text for message in messages if message.kind is MessageKind.USER],
            actions=[message.text for message in messages if message.kind is MessageKind.ACTION],
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
    said = {kind: [text for who, text in spoken if who == kind and text] for kind in make}
    expected = plain.features(
        [entry.text for entry in parsed.entries],
        task=task,
        previous=[] if previous is None else [entry.text for entry in previous.entries],
        outputs=said["environment"],
        users=said["user"],
        actions=said["action"],
    )
    compare(look(parsed, *messages, task=task, previous=previous), expected)
