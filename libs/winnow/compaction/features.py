"""The features of entries: what the whole span says of each, as finite numbers. Their meaning is fixed by `FEATURES_VERSION`."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from winnow.compaction import text as texts
from winnow.compaction.alignment import Aligned, align
from winnow.compaction.corpus import Corpus, Streams, entry_pairs
from winnow.compaction.fields import agreeing
from winnow.compaction.fitting import fitting
from winnow.compaction.lookup import Lookup, Place
from winnow.compaction.postings import Floats, Ints, Postings, Queries, tally
from winnow.compaction.retrieval import Hit, Index, top
from winnow.compaction.roles import Role
from winnow.compaction.similarity import bounds, ratio
from winnow.compaction.style import Style
from winnow.compaction.values import CODE, Value, scaled_number, sums

#: Version of the features and of the text processing below them. Scores and calibrations are bound to it.
FEATURES_VERSION: Final = f"4.{texts.TEXT_VERSION}"

#: Units of M whose characters are compared with an entry: the two that cover most of its tokens.
CARRY_CANDIDATES: Final = 2
#: At or below it an entry is not taken over word for word, and `carry` is 0: a bound shows that for most pairs without the ratio.
CARRY_FLOOR: Final = 0.85
#: Share of an entry's mass that a unit must cover before characters are compared. On dev no pair above the floor has less.
CARRY_COVERAGE: Final = 0.5
#: Units of M that an entry is aligned with: those that cover most of its tokens.
ALIGNED_UNITS: Final = 4
#: Up to so many numbers are counted in a loop; a Counter costs more to set up and less a number.
_COUNTED: Final = 40
#: Counts of values are capped here: more of them say no more.
_NEAR_CAP: Final = 5
_FIELDS_CAP: Final = 3
_TOLD_CAP: Final = 3
#: Neighbouring values of an entry that are looked at as pairs.
_PAIRS: Final = 10
#: Weight of values that no source holds, from which on they speak against M: one code, or two other values.
_UNHELD_FROM: Final = 2
#: Shortest value that is an identifier by holding letters and digits.
_IDENTIFIER_CHARS: Final = 4
#: Decimals of a stored feature. Whoever computes with features computes with the stored ones.
DECIMALS: Final = 6

_TOKEN_NAMES: Final = (
    "cov_task", "cov_user", "cov_act", "env_mass", "new_agent", "new_user", "bg_prev", "bg_user", "bg_task", "bg_env", "novel_pass",
    "env_only", "carry", "field_share", "out_fits",
)  # fmt: skip
_ALIGNED_NAMES: Final = ("prev_stretch", "prev_strict", "prev_dice", "prev_covered")
_VALUE_NAMES: Final = (
    "val2_env", "val2_orph", "val_cooc", "val_user", "val_near", "val_unit", "val_task", "rec_id", "told_pairs", "derived", "unheld",
    "out_codes",
)  # fmt: skip
_STYLE_NAMES: Final = ("obs", "imper", "modal", "lead")
#: Names of all features, in the order of a row.
NAMES: Final = (*_TOKEN_NAMES, *_ALIGNED_NAMES, *_VALUE_NAMES, *_STYLE_NAMES)
#: Those that provenance alone needs; they are not stored.
_PASSING: Final = frozenset({"cov_task", "cov_user", "cov_act", "bg_user", "val_user"})
#: Names of the features that are stored with an entry: those of the model and those of the formula.
STORED: Final = tuple(name for name in NAMES if name not in _PASSING)
_STORED: Final = itemgetter(*STORED)


class Carry(NamedTuple):
    """The unit of M that an entry rests on, if any.

    Named tuples in this module: one an entry, at a third of a dataclass's price.
    """

    unit: int | None
    coverage: float  # share of the entry's idf mass in that unit
    ratio: float  # character-sequence ratio, 0.0 below the floor


@dataclass(frozen=True, slots=True)
class Token:
    """What rests on tokens, one row an entry."""

    rows: list[tuple[float, ...]]  # by `_TOKEN_NAMES`
    hits: list[list[Hit]]
    carry: list[Carry]
    aligned: list[Aligned]
    capped: bool  # some tokens were left out, because entries and span together are too many


def token_features(corpus: Corpus, streams: Streams, queries: Queries, entry_texts: Sequence[str]) -> Token:
    """Task subtraction, first mention, pairs, retrieval, fields and what M holds, of all entries."""
    passages, units, count = len(corpus.passages), len(corpus.units), queries.count
    held = int(streams.text.searchsorted(passages + units))
    postings = Postings.of(streams.ids[:held], streams.text[:held], passages + units, len(queries.vocabulary))
    df = postings.frequency_within(passages)
    idf = np.log1p((passages - df + 0.5) / (df + 0.5))
    # Over all texts: a word that everyone uses says little, also where no passage holds it.
    number = len(corpus.role)
    spread = np.log1p((number - streams.texts + 0.5) / (streams.texts + 0.5))
    task, user, agent, _, _ = streams.said
    novel = ~(task | user)
    every = np.ones_like(novel)
    first = streams.first
    new = ~streams.said[Role.PREVIOUS]
    masses = queries.sums(
        np.concatenate(
            (
                idf * np.array([every, ~novel, user, agent]),
                spread * np.array([every, first == Role.SOURCE, new & (first == Role.AGENT), new & (first == Role.USER)]),
            )
        )
    )
    total, weight = masses[0], masses[4]
    total[total == 0.0] = weight[weight == 0.0] = 1.0  # an entry without tokens: every share is 0
    best = np.zeros((3, count))  # of the best passage: what P and users do not say, what the agent does not say either, and BM25
    hits: list[list[Hit]] = [[] for _ in range(count)]
    carry: list[Carry] = [Carry(None, 0.0, 0.0)] * count
    near: list[list[int]] = [[] for _ in range(count)]
    if passages + units:
        weights = idf * np.array([every, novel, novel & ~agent])
        index = Index(corpus.stream.of, corpus.stream.lengths()[:passages], postings) if passages else None
        for block in postings.blocks(queries):
            rows = slice(block.begin, block.end)
            of_matches = weights[:, block.token] * block.first
            if index is None:
                cover = block.totals(of_matches)[0]
            else:
                totals = block.totals(np.concatenate((of_matches, index.weights[None, block.match])))
                best[:, rows] = totals[1:, :, :passages].max(axis=2)
                hits[rows] = top(totals[3, :, :passages])
                cover = totals[0, :, passages:]
            if units:
                carry[rows], near[rows] = _carry(corpus, cover / total[rows, None], entry_texts[rows])
    best[:2] /= total
    aligned = _align(corpus, streams, queries, spread.tolist(), near) if units else [Aligned()] * count
    shares = [*(masses[1:4] / total).tolist(), np.log1p(masses[5]).tolist(), *(masses[6:] / weight).tolist()]
    columns = [*shares, *_pair_shares(streams, queries).tolist(), *best[:2].tolist(), [found.ratio for found in carry]]
    agreed = agreeing([output.text for output in corpus.outputs], queries)
    # Exact sums: the order of a set is nobody's.
    fields = [math.fsum(spread[list(ids)].tolist()) / of_entry for ids, of_entry in zip(agreed, weight.tolist(), strict=True)]
    rows_of = zip(*columns, fields, [fitting(corpus)] * count, strict=True)
    return Token(list(rows_of), hits, carry, aligned, postings.excessive(queries))


def _align(corpus: Corpus, streams: Streams, queries: Queries, weights: list[float], near: list[list[int]]) -> list[Aligned]:
    """Align every entry with the units of M that cover most of it."""
    begin = len(corpus.passages)
    edges = streams.text.searchsorted(np.arange(begin, begin + len(corpus.units) + 1)).tolist()
    units: dict[int, tuple[frozenset[int], int]] = {}
    ids, starts = queries.ids.tolist(), queries.query.searchsorted(np.arange(queries.count + 1)).tolist()
    found: list[Aligned] = []
    for entry, candidates in enumerate(near):
        for unit in candidates:
            if unit not in units:
                held = frozenset(streams.ids[edges[unit] : edges[unit + 1]].tolist())
                units[unit] = held, len(set(corpus.stream.of(begin + unit)))
        found.append(align(ids[starts[entry] : starts[entry + 1]], weights, [units[unit] for unit in candidates]))
    return found


def _pair_shares(streams: Streams, queries: Queries) -> Floats:
    """Shares of an entry's adjacent token pairs: in M; in user turns; in P; in outputs and in none of P, user turns and actions."""
    entry, codes = entry_pairs(queries)
    number = np.bincount(entry, minlength=queries.count).astype(float)
    number[number == 0.0] = 1.0
    at: Ints = streams.pairs.searchsorted(codes)
    task, user, agent, previous, source = streams.paired
    masks = np.array([previous, user, task, source & ~(task | user | agent)], float)
    shares: Floats = tally(entry, masks[:, at], queries.count) / number
    return shares


def _carry(corpus: Corpus, cover: Floats, entry_texts: Sequence[str]) -> tuple[list[Carry], list[list[int]]]:
    """Find the unit of M that each entry rests on: the most alike of the two that cover it best, else the better one; and the four."""
    best = (-cover).argsort(axis=1, kind="stable")[:, :ALIGNED_UNITS]
    covers = cover[np.arange(len(cover))[:, None], best]
    found = [
        Carry(unit if share > 0.0 else None, share, 0.0) for unit, share in zip(best[:, 0].tolist(), covers[:, 0].tolist(), strict=True)
    ]
    covering = zip(best.tolist(), covers.tolist(), strict=True)
    near = [[unit for unit, share in zip(units, shares, strict=True) if share > 0.0] for units, shares in covering]
    rows, ranks = (covers[:, :CARRY_CANDIDATES] >= CARRY_COVERAGE).nonzero()
    if not len(rows):
        return found, near
    units = best[rows, ranks]
    pairs = zip(rows.tolist(), units.tolist(), covers[rows, ranks].tolist(), strict=True)
    texts_of = [(row, unit, share, entry_texts[row], corpus.units[unit].text) for row, unit, share in pairs]
    possible = bounds([pair[3] for pair in texts_of], [pair[4] for pair in texts_of]) > CARRY_FLOOR
    for (row, unit, share, entry, text), worth in zip(texts_of, possible.tolist(), strict=True):
        like = ratio(entry, text) if worth else 0.0
        if like > max(CARRY_FLOOR, found[row].ratio):
            found[row] = Carry(unit, share, like)
    return found, near


class Valued(NamedTuple):
    """What the values of one entry say."""

    features: tuple[float, ...]  # by `_VALUE_NAMES`
    span_sources: int  # values, weak ones aside, that an output says before P, the user or the agent
    previous: int  # values, weak ones aside, that M says first
    orphan_numbers: list[str]  # numbers, weak ones aside, that nobody says
    known_numbers: list[str]  # numbers that an output or M says


def value_features(values: Sequence[Value], lookup: Lookup) -> Valued:  # noqa: C901, PLR0912  one pass, a branch a count
    """Features that rest on the values of one entry."""
    number = len(values) or 1
    two_env = orphan = first_user = span_sources = strong_prev = identifiers = weight = unheld = of_task = absent = 0
    windows: list[AbstractSet[int]] = []
    own: list[AbstractSet[int]] = []  # of values that are not the agent's or a user's
    orphan_numbers: list[str] = []
    known_numbers: list[str] = []
    other_numbers: list[str] = []
    places = [lookup.places[value.needle] for value in values]
    for value, place in zip(values, places, strict=True):
        task, user, _, previous, source = place.first
        known = previous is not None or source is not None
        weight += value.weight
        if not known:
            unheld += value.weight
        if source is None:
            absent += value.weight == CODE
        if place.span_speaker is Role.TASK:
            of_task += value.weight
        if task is None and user is None:
            if known:
                two_env += 1
            else:
                orphan += 1
        speaker = place.speaker
        if speaker is Role.PREVIOUS:
            strong_prev += not value.is_weak
        elif speaker is Role.USER:
            first_user += 1
        if place.span_speaker is Role.SOURCE and not value.is_weak:
            span_sources += 1
        if place.is_field:
            identifiers += _is_identifier(value.needle)
        if value.is_number:
            if known:
                known_numbers.append(value.needle)
            else:
                other_numbers.append(value.needle)
                if speaker is None and not value.is_weak:
                    orphan_numbers.append(value.needle)
        if place.windows:
            windows.append(place.windows)
            if place.is_field or place.span_speaker not in _TOLD:
                own.append(place.windows)
    together, in_unit = _together(windows, lookup.passages)
    near = together if len(own) == len(windows) else _together(own, lookup.passages)[0]
    features = (
        two_env / number,
        orphan / number,
        max(together, in_unit) / number,
        first_user / number,
        math.log1p(min(near, _NEAR_CAP)),
        in_unit / number,
        of_task / (weight or 1),
        float(min(identifiers, _FIELDS_CAP)),
        float(_told_pairs(places, lookup)),
        float(_is_derived(known_numbers, other_numbers)),
        unheld / weight if unheld >= _UNHELD_FROM else 0.0,
        math.log1p(absent) if lookup.has_previous else 0.0,
    )
    return Valued(features, span_sources, strong_prev, orphan_numbers, known_numbers)


#: Who may name a thing before a record returns it.
_TOLD: Final = frozenset({Role.USER, Role.AGENT})


def _is_identifier(needle: str) -> bool:
    """Whether a value names one thing among many: snake_case, or letters and digits."""
    if "_" in needle:
        return True
    return len(needle) >= _IDENTIFIER_CHARS and any(map(str.isdigit, needle)) and any(map(str.isalpha, needle))


def _told_pairs(places: Sequence[Place], lookup: Lookup) -> int:
    """Neighbouring values that P or a user binds: both stand in one place there, and in no window of a record; at most three."""
    found = 0
    for left, right in islice(pairwise(places), _PAIRS):
        (left_task, left_user), (right_task, right_user) = left.told, right.told
        told = left_user >= 0 and left_user == right_user
        if not told and left_task >= 0 and right_task >= 0:
            # P is cut to pieces; what a host says besides is whole.
            told = left_task == right_task or (abs(left_task - right_task) == 1 and max(left_task, right_task) < lookup.of_task)
        if told and lookup.recorded.isdisjoint(left.windows & right.windows):
            found += 1
            if found == _TOLD_CAP:
                break
    return found


def _is_derived(known: list[str], others: list[str]) -> bool:
    """Whether a number that no source says is a sum or difference of the entry's numbers that one says."""
    if not known or not others:
        return False
    reached = sums(known)
    return any(scaled_number(number) in reached for number in others)


def _together(sets: Sequence[AbstractSet[int]], passages: int) -> tuple[int, int]:
    """In how many of the sets the window of two passages stands that stands in most of them; and the same for units of M."""
    if len(sets) == 1:
        (only,) = sets
        return int(min(only) < passages), int(max(only) >= passages)
    if sum(map(len, sets)) > _COUNTED:
        counts: Mapping[int, int] = Counter(chain.from_iterable(sets))
    else:
        small: dict[int, int] = {}
        counts = small
        for numbers in sets:
            for number in numbers:
                small[number] = small.get(number, 0) + 1
    near = in_unit = 0
    for number, count in counts.items():
        if number >= passages:
            in_unit = max(in_unit, count)
        elif count > near:
            near = count
    return near, in_unit


def row(token: tuple[float, ...], aligned: Aligned, value: tuple[float, ...], style: Style, *, introduces: bool) -> dict[str, float]:
    """The features of one entry, by name. `introduces`: it ends with a colon, what it says stands below it."""
    signs = (style.observation, style.imperative, style.modal, float(introduces))
    return dict(zip(NAMES, (*token, *aligned, *value, *signs), strict=True))


def stored(rows: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Of each entry what is stored, rounded: every judge, everywhere, reads the same numbers."""
    rounded = np.array(list(map(_STORED, rows))).round(DECIMALS)
    return [dict(zip(STORED, values, strict=True)) for values in rounded.tolist()]
