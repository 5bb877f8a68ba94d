"""Where an entry's information was first said, and which classes support it."""

from collections.abc import Mapping, Sequence
from typing import Final

from winnow.compaction.features import Carry, Valued
from winnow.compaction.lookup import Place
from winnow.compaction.roles import Role
from winnow.compaction.values import Value, scaled_number, sums
from winnow.contracts.events import Message, ValueOrigin
from winnow.contracts.vocabulary import ProvenanceClass, Rules

_CLASS: Final = {
    Role.TASK: ProvenanceClass.TASK,
    Role.USER: ProvenanceClass.USER,
    Role.AGENT: ProvenanceClass.AGENT,
    Role.PREVIOUS: ProvenanceClass.PREVIOUS,
    Role.SOURCE: ProvenanceClass.ENVIRONMENT,
}

# Thresholds of support by wording, chosen on sourcebench dev (docs/judging.md has the precision and recall of each class).
#: Share of an entry's mass that one output passage holds and neither P nor a user turn nor the agent says.
ENV_ONLY: Final = 0.1
#: Share of the entry's mass in one unit of M, or of its token pairs in M, or number of values that M said first.
UNIT_COVERAGE: Final = 0.5
PREVIOUS_PAIRS: Final = 0.3
PREVIOUS_VALUES: Final = 2
#: Share of the entry's token pairs, of its mass, or of its values in user turns of the span.
USER_PAIRS: Final = 0.3
USER_COVERAGE: Final = 0.6
USER_VALUES: Final = 0.5
#: Share of an entry's mass in P or in the agent's words that names its class where no source does.
TALK_COVERAGE: Final = 0.3


def supports(features: Mapping[str, float], valued: Valued, carry: Carry, *, user_is_source: bool) -> tuple[ProvenanceClass, ...]:
    """All classes that support an entry, best first.

    `user_is_source` is false where user turns survive compaction, and under `published` rules.
    """
    found: list[ProvenanceClass] = []
    if valued.span_sources or features["env_only"] >= ENV_ONLY:
        found.append(ProvenanceClass.ENVIRONMENT)
    if carry.unit is not None and (
        carry.ratio > 0.0 or carry.coverage >= UNIT_COVERAGE or features["bg_prev"] >= PREVIOUS_PAIRS or valued.previous >= PREVIOUS_VALUES
    ):
        found.append(ProvenanceClass.PREVIOUS)
    if valued.orphan_numbers and valued.known_numbers and _derived(valued):
        found.append(ProvenanceClass.DERIVED)
    if user_is_source and (
        features["bg_user"] >= USER_PAIRS or features["cov_user"] >= USER_COVERAGE or features["val_user"] >= USER_VALUES
    ):
        found.append(ProvenanceClass.USER)
    return tuple(found)


def _derived(valued: Valued) -> bool:
    """Whether a number said nowhere is a sum or difference of the entry's own numbers that a source says."""
    reached = sums(valued.known_numbers)
    return any(scaled_number(number) in reached for number in valued.orphan_numbers)


def unsupported(values: Sequence[Value], places: Mapping[str, Place], features: Mapping[str, float]) -> ProvenanceClass:
    """Class of an entry without a source: the best that its values or its wording name."""
    speakers = {places[value.needle].speaker for value in values}
    for role, coverage in ((Role.USER, "cov_user"), (Role.TASK, "cov_task"), (Role.AGENT, "cov_act")):
        if role in speakers or features[coverage] >= TALK_COVERAGE:
            return _CLASS[role]
    return ProvenanceClass.NOWHERE


def origin(value: Value, place: Place, messages: Sequence[Message], unit_numbers: Sequence[int | None]) -> ValueOrigin:
    """Where a value was first said, for the event."""
    speaker = place.speaker
    if speaker is None:
        return ValueOrigin(value=value.shown, origin=ProvenanceClass.NOWHERE)
    order = place.first[speaker]
    if speaker is Role.PREVIOUS:
        return ValueOrigin(value=value.shown, origin=ProvenanceClass.PREVIOUS, message=unit_numbers[order or 0])
    if order is None or order < 0:
        return ValueOrigin(value=value.shown, origin=_CLASS[speaker])
    message = messages[order]
    tool = message.tool if speaker is Role.SOURCE else None
    return ValueOrigin(value=value.shown, origin=_CLASS[speaker], message=message.i, tool=tool)


def user_is_source(rules: Rules, *, user_turns_survive: bool) -> bool:
    """User turns of the span are a source where compaction removes them; the published system knows no such source."""
    return rules is Rules.WINNOW and not user_turns_survive
