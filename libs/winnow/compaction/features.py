"""The features of entries: what the whole span says of each, as finite numbers. Their meaning is fixed by `FEATURES_VERSION`."""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from winnow.compaction import text as texts
from winnow.compaction.corpus import Corpus, Streams, entry_pairs
from winnow.compaction.lookup import Place
from winnow.compaction.postings import Floats, Ints, Postings, Queries, tally
from winnow.compaction.retrieval import Hit, Index, top
from winnow.compaction.roles import Role
from winnow.compaction.similarity import bounds, ratio
from winnow.compaction.style import Style
from winnow.compaction.values import Value

#: Version of the features and of the text processing below them. Scores and calibrations are bound to it.
FEATURES_VERSION: Final = f"1.{texts.TEXT_VERSION}"

#: Units of M whose characters are compared with an entry: the two that cover most of its tokens.
CARRY_CANDIDATES: Final = 2
#: At or below it an entry is not taken over word for word, and `carry` is 0: a bound shows that for most pairs without the ratio.
CARRY_FLOOR: Final = 0.85
#: Share of an entry's mass that a unit must cover before characters are compared. On dev no pair above the floor has less.
CARRY_COVERAGE: Final = 0.5
#: Up to so many numbers are counted in a loop; a Counter costs more to set up and less a number.
_COUNTED: Final = 40
#: Counts of values are capped here.
_COUNT_CAP: Final = 4

_TOKEN_NAMES: Final = (
    "cov_env", "cov_prev", "cov_task", "cov_user", "cov_act", "bg_prev", "bg_user", "bg_non", "cov_pass", "novel_pass", "env_only",
    "bm25_max", "cov_unit", "carry",
)  # fmt: skip
_VALUE_NAMES: Final = ("val2_env", "val2_orph", "val_cooc", "val_env", "val_any_env", "val_user", "num_orphan")
_STYLE_NAMES: Final = ("obs", "imper", "modal", "len")
#: Names of the features, in the order of a row.
NAMES: Final = (*_TOKEN_NAMES, *_VALUE_NAMES, *_STYLE_NAMES)


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
    capped: bool  # some tokens were left out, because entries and span together are too many


def token_features(corpus: Corpus, streams: Streams, queries: Queries, entry_texts: Sequence[str]) -> Token:
    """Coverage, task subtraction, pairs, retrieval and carry-over of all entries."""
    passages, units, count = len(corpus.passages), len(corpus.units), queries.count
    held = int(streams.text.searchsorted(passages + units))
    postings = Postings.of(streams.ids[:held], streams.text[:held], passages + units, len(queries.vocabulary))
    df = postings.frequency_within(passages)
    idf = np.log1p((passages - df + 0.5) / (df + 0.5))
    task, user, agent, previous, source = streams.said
    novel = ~(task | user)
    every = np.ones_like(novel)
    masses = queries.sums(idf * np.array([every, source, previous, ~novel, user, agent]))
    total = masses[0]
    total[total == 0.0] = 1.0  # an entry without tokens: every share is 0
    best = np.zeros((4, count))  # coverage of the best passage, its novel part, what nobody else says, and BM25
    hits: list[list[Hit]] = [[] for _ in range(count)]
    carry: list[Carry] = [Carry(None, 0.0, 0.0)] * count
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
                best[:, rows] = totals[:, :, :passages].max(axis=2)
                hits[rows] = top(totals[3, :, :passages])
                cover = totals[0, :, passages:]
            if units:
                carry[rows] = _carry(corpus, cover / total[rows, None], entry_texts[rows])
    best[:3] /= total
    pairs = _pair_shares(streams, queries)
    columns = [*(masses[1:] / total).tolist(), *pairs.tolist(), *best.tolist()]
    rows_of = zip(*columns, [found.coverage for found in carry], [found.ratio for found in carry], strict=True)
    return Token(list(rows_of), hits, carry, postings.excessive(queries))


def _pair_shares(streams: Streams, queries: Queries) -> Floats:
    """Shares of an entry's adjacent token pairs: in M; in user turns; in P, U or A."""
    entry, codes = entry_pairs(queries)
    number = np.bincount(entry, minlength=queries.count).astype(float)
    number[number == 0.0] = 1.0
    at: Ints = streams.pairs.searchsorted(codes)
    task, user, agent, previous, _ = streams.paired
    masks = np.array([previous, user, task | user | agent], float)
    shares: Floats = tally(entry, masks[:, at], queries.count) / number
    return shares


def _carry(corpus: Corpus, cover: Floats, entry_texts: Sequence[str]) -> list[Carry]:
    """Align each entry with the unit of M that it rests on: the most alike of the two that cover it best, else the better one."""
    width = min(CARRY_CANDIDATES, cover.shape[1])
    best = (-cover).argsort(axis=1, kind="stable")[:, :width]
    covers = cover[np.arange(len(cover))[:, None], best]
    found = [
        Carry(unit if share > 0.0 else None, share, 0.0) for unit, share in zip(best[:, 0].tolist(), covers[:, 0].tolist(), strict=True)
    ]
    rows, ranks = (covers >= CARRY_COVERAGE).nonzero()
    if not len(rows):
        return found
    units = best[rows, ranks]
    pairs = zip(rows.tolist(), units.tolist(), covers[rows, ranks].tolist(), strict=True)
    texts_of = [(row, unit, share, entry_texts[row], corpus.units[unit].text) for row, unit, share in pairs]
    possible = bounds([pair[3] for pair in texts_of], [pair[4] for pair in texts_of]) > CARRY_FLOOR
    for (row, unit, share, entry, text), worth in zip(texts_of, possible.tolist(), strict=True):
        like = ratio(entry, text) if worth else 0.0
        if like > max(CARRY_FLOOR, found[row].ratio):
            found[row] = Carry(unit, share, like)
    return found


class Valued(NamedTuple):
    """What the values of one entry say."""

    features: tuple[float, ...]  # by `_VALUE_NAMES`
    span_sources: int  # values, weak ones aside, that an output says before P, the user or the agent
    previous: int  # values, weak ones aside, that M says first
    orphan_numbers: list[str]  # numbers, weak ones aside, that nobody says
    known_numbers: list[str]  # numbers that an output or M says


def value_features(values: Sequence[Value], places: dict[str, Place]) -> Valued:  # noqa: C901, PLR0912  one pass, a branch a count
    """Features that rest on the values of one entry."""
    number = len(values) or 1
    env = two_env = orphan = first_user = lost = span_sources = strong_prev = 0
    windows: list[AbstractSet[int]] = []
    orphan_numbers: list[str] = []
    known_numbers: list[str] = []
    for value in values:
        (task, user, _, previous, source), held, speaker, span_speaker = places[value.needle]
        known = previous is not None or source is not None
        if task is None and user is None:
            if known:
                two_env += 1
            else:
                orphan += 1
        if speaker is Role.SOURCE:
            env += 1
        elif speaker is Role.PREVIOUS:
            env += 1
            strong_prev += not value.is_weak
        elif speaker is Role.USER:
            first_user += 1
        if span_speaker is Role.SOURCE and not value.is_weak:
            span_sources += 1
        if value.is_number:
            if known:
                known_numbers.append(value.needle)
            elif speaker is None:
                lost += 1
                if not value.is_weak:
                    orphan_numbers.append(value.needle)
        if held:
            windows.append(held)
    together = _most_common(windows) if len(windows) > 1 else len(windows)
    features = (
        two_env / number,
        orphan / number,
        together / number,
        env / number,
        float(env > 0),
        first_user / number,
        float(min(lost, _COUNT_CAP)),
    )
    return Valued(features, span_sources, strong_prev, orphan_numbers, known_numbers)


def _most_common(sets: Sequence[AbstractSet[int]]) -> int:
    """In how many of the sets the number stands that stands in most of them."""
    if sum(map(len, sets)) > _COUNTED:
        return max(Counter(chain.from_iterable(sets)).values())
    counts: dict[int, int] = {}
    for numbers in sets:
        for number in numbers:
            counts[number] = counts.get(number, 0) + 1
    return max(counts.values())


def row(token: tuple[float, ...], value: tuple[float, ...], style: Style) -> dict[str, float]:
    """The features of one entry, by name."""
    return dict(zip(NAMES, (*token, *value, *style), strict=True))
