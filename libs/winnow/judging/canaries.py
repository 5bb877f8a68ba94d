"""Entries with known answers, made from live traffic, that a judge is asked about beside the real ones.

At most two a boundary. One has certainly no source: an entry of another run of the same fleet, with values of which none occurs in anything
that was said here. One certainly has one: a key with its value, word for word from an output, or an entry of the previous summary, word for
word. All share the boundary's evidence, so a judge cannot tell them from the others; a judge that drifts gets them wrong before anybody has
labelled anything. Nothing is planted under `published` rules. Pure: all chance is passed in.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from winnow.compaction import text as texts
from winnow.compaction.analysis import analyse
from winnow.compaction.boundary import Examined
from winnow.compaction.parse import parse
from winnow.compaction.roles import Role, role_of
from winnow.contracts.events import Canary, Message, Passage
from winnow.contracts.vocabulary import CanaryKind, Rules
from winnow.judging.port import JudgeRequest
from winnow.judging.stress import Chance, holds, telling

#: Characters of a boundary above which none is planted: its texts are searched once for each value of each donor.
MOST_CHARACTERS: Final = 2_000_000
#: Donors that are tried, and places in outputs that are looked at.
_DONORS, _PLACES = 16, 400
#: Characters of an entry that is planted: as long as real ones are.
_SHORTEST, _LONGEST = 8, 300
#: Values that a donor must have: one alone may be said here in a way that is not looked for.
_LEAST_VALUES: Final = 2
#: Chance with which a boundary that has canaries may give its run's observation: not always the first, where M is missing.
_COIN: Final = 0.5
#: A line with a key and a value; a field of a JSON record.
_LINE: Final = re.compile(r"(?m)^[ \t]{0,8}([A-Za-z_][\w .\-/]{1,50}[:=][ \t]{0,4}\S[^\n]{0,200})$")
_FIELD: Final = re.compile(r'"[A-Za-z_][\w ]{1,40}":[ ]?(?:"[^"\\\n]{2,100}"|-?[0-9][0-9.]{1,20})')
#: Host of none: bullets under a heading are entries.
_PROFILE: Final = "markdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What chance says of a boundary; a function of the fleet and the boundary, so a repetition draws the same."""

    planted: bool
    counts: bool
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Donor:
    """An entry of another run that had a source there."""

    run: str
    section: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The boundary that canaries are planted in."""

    run: str
    task: str
    previous: str | None
    history: Sequence[Message]
    retained: Sequence[Message]
    rules: Rules
    examined: Examined


def draw(fleet: str, boundary_id: UUID, share: float) -> Draw:
    """Draw for a boundary: planted with probability `share`."""
    digest = hashlib.sha256(f"canary\x1f{fleet}\x1f{boundary_id}".encode()).digest()
    first, second, seed = (int.from_bytes(digest[i : i + 8], "big") for i in (0, 8, 16))
    return Draw(planted=first < share * 2**64, counts=second < _COIN * 2**64, seed=seed)


def plant(ground: Ground, donors: Sequence[Donor], chance: Draw, rng: Chance) -> tuple[Canary, ...]:
    """The canaries of a boundary, none where nothing is certain enough.

    Args:
        ground: the boundary as it was examined.
        donors: entries of the same fleet, of any run; those of this run are passed over.
        chance: what was drawn for it.
        rng: chooses among what fits; seeded with `chance.seed`, so that a repetition chooses the same.
    """
    if not chance.planted or ground.rules is Rules.PUBLISHED or not ground.examined.analysis.entries:
        return ()
    messages = (*ground.history, *ground.retained)
    if len(ground.task) + len(ground.previous or "") + sum(len(m.text) for m in messages) > MOST_CHARACTERS:
        return ()
    made = [_negative(ground, messages, donors, rng), _positive(ground, messages, rng)]
    chosen = [found for found in made if found is not None]
    rng.shuffle(chosen)
    return _examined(ground, chosen, counts=chance.counts)


def with_canaries(request: JudgeRequest) -> JudgeRequest:
    """The request with its canaries among the entries, as if they were some."""
    evidence = request.evidence
    if not evidence.canaries:
        return request
    entries = (*evidence.entries, *(canary.entry for canary in evidence.canaries))
    passages = (*evidence.passages, *(passage for canary in evidence.canaries for passage in canary.passages))
    return replace(request, evidence=evidence.model_copy(update={"entries": entries, "passages": passages}))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """A canary before it is examined."""

    kind: CanaryKind
    section: str
    text: str
    donor: str | None = None


def _negative(ground: Ground, messages: Sequence[Message], donors: Sequence[Donor], rng: Chance) -> _Chosen | None:
    """A donor's entry of whose values none occurs in anything that was said."""
    strangers = [donor for donor in donors if donor.run != ground.run]
    rng.shuffle(strangers)
    said = ""
    for donor in strangers[:_DONORS]:
        bare = _one_line(donor.text)
        values = telling(bare) if bare else []
        if len(values) < _LEAST_VALUES:
            continue
        said = said or _matched((ground.task, ground.previous or "", *(m.text for m in messages)))
        if not any(holds(said, value) for value in values):
            return _Chosen(kind=CanaryKind.DONOR, section=donor.section, text=bare, donor=donor.run)
    return None


def _positive(ground: Ground, messages: Sequence[Message], rng: Chance) -> _Chosen | None:
    """A line of an output, or an entry of M; which of the two by chance, where there are both."""
    section = rng.choice(ground.examined.analysis.entries).section
    chosen: list[_Chosen] = []
    places = list(_places(ground, messages))
    if places:
        chosen.append(_Chosen(kind=CanaryKind.OUTPUT, section=section, text=rng.choice(places)))
    carried = list(_carried(ground))
    if carried:
        chosen.append(_Chosen(kind=CanaryKind.PREVIOUS, section=section, text=rng.choice(carried)))
    return rng.choice(chosen) if chosen else None


def _places(ground: Ground, messages: Sequence[Message]) -> Iterator[str]:
    """Keys with values in outputs, the latest output first, whose value neither the task, a user nor the agent says."""
    roles = [role_of(message, ground.rules) for message in messages]
    others = _matched((ground.task, *(m.text for m, role in zip(messages, roles, strict=True) if role is not Role.SOURCE)))
    left = _PLACES
    for message, role in zip(reversed(messages), reversed(roles), strict=True):
        if role is not Role.SOURCE:
            continue
        for pattern in (_LINE, _FIELD):
            for found in pattern.finditer(message.text):
                left -= 1
                if left < 0:
                    return
                bare = _one_line(found.group(found.lastindex or 0))
                values = [value for value in telling(bare) if any(c.isdigit() for c in value.needle)] if bare else []
                if values and not any(holds(others, value) for value in values):
                    yield bare


def _carried(ground: Ground) -> Iterator[str]:
    """Entries of M that have a value."""
    if not ground.previous:
        return
    for entry in parse(ground.previous, profile=ground.examined.parsed.profile, rules=ground.rules).entries:
        bare = _one_line(entry.text)
        if bare and telling(bare):
            yield bare


def _one_line(text: str) -> str:
    """The text of an entry without its marker, where it is one line of a usual length that stays one entry; else nothing."""
    bare = texts.strip_marker(text).strip()
    usable = _SHORTEST <= len(bare) <= _LONGEST and bare.isprintable() and not bare.startswith(("#", "```", "|", ">", "<"))
    return bare if usable else ""


def _matched(parts: Sequence[str]) -> str:
    """Texts as values are matched."""
    return texts.normalise("\n".join(parts)).lower()


def _examined(ground: Ground, chosen: Sequence[_Chosen], *, counts: bool) -> tuple[Canary, ...]:
    """Canaries with evidence, provenance and features, as entries of the boundary would have them."""
    if not chosen:
        return ()
    parsed = parse("".join(f"## {one.section or 'Notes'}\n- {one.text}\n\n" for one in chosen), profile=_PROFILE)
    if [texts.strip_marker(entry.text).strip() for entry in parsed.entries] != [one.text for one in chosen]:
        return ()  # a text that the parser takes for something else than one entry
    found = ground.examined
    previous = parse(ground.previous, profile=found.parsed.profile, rules=ground.rules) if ground.previous else None
    analysis = analyse(
        parsed,
        task=ground.task,
        previous=previous,
        history=ground.history,
        retained=ground.retained,
        user_turns_survive=found.user_turns_survive,
        rules=ground.rules,
    )
    number = {_place(passage): passage.id for passage in found.analysis.passages}
    pool = {passage.id: passage for passage in analysis.passages}
    canaries: list[Canary] = []
    for one, entry in zip(chosen, analysis.entries, strict=True):
        more: list[Passage] = []
        links = []
        for link in entry.evidence:
            passage = pool[link.passage]
            if _place(passage) not in number:
                number[_place(passage)] = len(number) + 1
                more.append(passage.model_copy(update={"id": number[_place(passage)]}))
            links.append(link.model_copy(update={"passage": number[_place(passage)]}))
        at = len(found.analysis.entries) + len(canaries) + 1
        own = entry.model_copy(update={"n": at, "section": one.section, "evidence": tuple(links), "span": (0, 0), "parent": None})
        canaries.append(Canary(kind=one.kind, entry=own, passages=tuple(more), counts=counts, donor=one.donor))
    return tuple(canaries)


def _place(passage: Passage) -> tuple[int, int, int]:
    """What makes two passages the same."""
    return passage.message, passage.start, passage.end
