"""Where an entry's information was first said, and which classes support it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from winnow.compaction.features import Carry
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


@dataclass(frozen=True, slots=True)
class Provenance:
    """The class of an entry and all classes that support it."""

    best: ProvenanceClass
    sources: tuple[ProvenanceClass, ...]
    values: tuple[ValueOrigin, ...]


def provenance(
    values: Sequence[Value],
    places: Mapping[str, Place],
    features: Mapping[str, float],
    carry: Carry,
    *,
    messages: Sequence[Message],
    unit_numbers: Sequence[int | None],
    user_is_source: bool,
) -> Provenance:
    """Class an entry. `user_is_source` is false where user turns survive compaction, and under `published` rules."""
    firsts = [places[value.needle].speaker for value in values]
    supported = {
        ProvenanceClass.ENVIRONMENT: features["env_only"] >= ENV_ONLY
        or any(not value.is_weak and places[value.needle].span_speaker is Role.SOURCE for value in values),
        ProvenanceClass.PREVIOUS: carry.unit is not None
        and (
            carry.ratio > 0.0
            or carry.coverage >= UNIT_COVERAGE
            or features["bg_prev"] >= PREVIOUS_PAIRS
            or sum(places[value.needle].speaker is Role.PREVIOUS and not value.is_weak for value in values) >= PREVIOUS_VALUES
        ),
        ProvenanceClass.DERIVED: _derived(values, places),
        ProvenanceClass.USER: user_is_source
        and (features["bg_user"] >= USER_PAIRS or features["cov_user"] >= USER_COVERAGE or features["val_user"] >= USER_VALUES),
    }
    sources = tuple(kind for kind, holds in supported.items() if holds)
    origins = tuple(
        _origin(value, first, places[value.needle], messages, unit_numbers) for value, first in zip(values, firsts, strict=True)
    )
    return Provenance(sources[0] if sources else _unsupported(firsts, features), sources, origins)


def _derived(values: Sequence[Value], places: Mapping[str, Place]) -> bool:
    """Whether a number said nowhere is a sum or difference of the entry's own numbers that a source says."""
    orphans = [value for value in values if value.is_number and not value.is_weak and places[value.needle].speaker is None]
    if not orphans:
        return False
    known = [
        value.needle
        for value in values
        if value.is_number and (places[value.needle].said_by(Role.SOURCE) or places[value.needle].said_by(Role.PREVIOUS))
    ]
    return not sums(known).isdisjoint(scaled_number(value.needle) for value in orphans)


def _unsupported(firsts: Sequence[Role | None], features: Mapping[str, float]) -> ProvenanceClass:
    """Class of an entry without a source: the best that its values or its wording name."""
    for role, coverage in ((Role.USER, features["cov_user"]), (Role.TASK, features["cov_task"]), (Role.AGENT, features["cov_act"])):
        if role in firsts or coverage >= TALK_COVERAGE:
            return _CLASS[role]
    return ProvenanceClass.NOWHERE


def _origin(value: Value, first: Role | None, place: Place, messages: Sequence[Message], unit_numbers: Sequence[int | None]) -> ValueOrigin:
    """Where a value was first said, for the event."""
    if first is None:
        return ValueOrigin(value=value.shown, origin=ProvenanceClass.NOWHERE)
    order = place.first[first]
    if first is Role.PREVIOUS:
        return ValueOrigin(value=value.shown, origin=ProvenanceClass.PREVIOUS, message=unit_numbers[order or 0])
    if order is None or order < 0:
        return ValueOrigin(value=value.shown, origin=_CLASS[first])
    message = messages[order]
    return ValueOrigin(value=value.shown, origin=_CLASS[first], message=message.i, tool=message.tool if first is Role.SOURCE else None)


def user_is_source(rules: Rules, *, user_turns_survive: bool) -> bool:
    """User turns of the span are a source where compaction removes them; the published system knows no such source."""
    return rules is Rules.WINNOW and not user_turns_survive
