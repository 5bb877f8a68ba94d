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
from winnow.compaction.similarity import ratio
from winnow.compaction.style import Style
from winnow.compaction.values import Value

#: Version of the features and of the text processing below them. Scores and calibrations are bound to it.
FEATURES_VERSION: Final = f"1.{texts.TEXT_VERSION}"

#: Units of M whose characters are compared with an entry: the two that cover most of its tokens.
CARRY_CANDIDATES: Final = 2
#: At or below it an entry is not taken over word for word, and `carry` is 0: upper bounds show that for most pairs without the
#: ratio, which costs a third of a millisecond.
CARRY_FLOOR: Final = 0.85
#: Share of an entry's mass that a unit must cover before characters are compared. On dev no pair above the floor has less.
CARRY_COVERAGE: Final = 0.5
#: Counts of values are capped here.
_COUNT_CAP: Final = 4

#: Names of the features, in the order of a row.
NAMES: Final = (
    # the nine of the training-free formula
    "novel_pass", "val2_env", "carry", "bg_prev", "val_cooc", "val2_orph", "obs", "imper", "modal",
    # coverage: share of the entry's idf mass
    "cov_pass", "cov_env", "cov_prev", "cov_unit", "cov_task", "cov_user", "cov_act", "env_only",
    # pairs, values, and the rest
    "bg_env", "bg_user", "bg_non", "val_env", "val_any_env", "val_env_n", "val_user", "val_prev", "num_orphan", "bm25_max", "values",
    "len",
)  # fmt: skip


class Carry(NamedTuple):
    """The unit of M that an entry rests on, if any.

    Named tuples in this module: one an entry, at a third of a dataclass's price.
    """

    unit: int | None
    coverage: float  # share of the entry's idf mass in that unit
    ratio: float  # character-sequence ratio, 0.0 below the floor


@dataclass(frozen=True, slots=True)
class Token:
    """Features that rest on tokens, one row an entry."""

    columns: dict[str, Floats]
    hits: list[list[Hit]]
    carry: list[Carry]
    capped: bool  # some tokens were left out, because entries and span together are too many


def token_features(corpus: Corpus, streams: Streams, queries: Queries, entry_texts: Sequence[str]) -> Token:
    """Coverage, task subtraction, pairs, retrieval and carry-over of all entries."""
    passages, units = len(corpus.passages), len(corpus.units)
    vocabulary, count = len(queries.vocabulary), queries.count
    in_passages, in_units = np.searchsorted(streams.text, (passages, passages + units)).tolist()
    source = Postings.of(streams.ids[:in_passages], streams.text[:in_passages], passages, vocabulary)
    unit = Postings.of(streams.ids[in_passages:in_units], streams.text[in_passages:in_units] - passages, units, vocabulary)
    df = source.document_frequency
    idf = np.log1p((passages - df + 0.5) / (df + 0.5))
    outside = streams.said[Role.TASK] | streams.said[Role.USER]
    said = streams.said
    masks = np.array([np.ones_like(outside), said[Role.SOURCE], said[Role.PREVIOUS], outside, said[Role.USER], said[Role.AGENT]])
    masses = queries.sums(idf * masks)
    total = masses[0]
    total[total == 0.0] = 1.0  # an entry without tokens: every share is 0
    columns = dict(zip(("cov_env", "cov_prev", "cov_task", "cov_user", "cov_act"), masses[1:] / total, strict=True))
    columns |= _pair_columns(streams, queries)
    best = np.zeros((3, count))
    bm25 = np.zeros(count)
    hits: list[list[Hit]] = [[] for _ in range(count)]
    if passages:
        weights = idf * np.array([masks[0], ~outside, ~(outside | said[Role.AGENT])])
        index = Index(corpus.stream.of, corpus.stream.lengths()[:passages], source)
        for block in source.blocks(queries):
            rows = slice(block.begin, block.end)
            best[:, rows] = block.totals(weights[:, block.token] * block.first).max(axis=2) / total[rows]
            scores = index.scores(block)
            bm25[rows] = scores.max(axis=1)
            hits[rows] = top(scores)
    columns |= zip(("cov_pass", "novel_pass", "env_only"), best, strict=True)
    columns["bm25_max"] = bm25
    carry: list[Carry] = [Carry(None, 0.0, 0.0)] * count
    if units:
        for block in unit.blocks(queries):
            rows = slice(block.begin, block.end)
            cover = block.totals((idf[block.token] * block.first)[None])[0] / total[rows, None]
            carry[rows] = _carry(corpus, cover, entry_texts[rows])
    columns["cov_unit"] = np.array([found.coverage for found in carry])
    columns["carry"] = np.array([found.ratio for found in carry])
    return Token(columns, hits, carry, source.excessive(queries) or unit.excessive(queries))


def _pair_columns(streams: Streams, queries: Queries) -> dict[str, Floats]:
    """Shares of an entry's adjacent token pairs: in M, in E or M, in user turns, in P, U or A."""
    entry, codes = entry_pairs(queries)
    number = np.bincount(entry, minlength=queries.count).astype(float)
    number[number == 0.0] = 1.0
    at: Ints = np.searchsorted(streams.pairs, codes)
    paired = streams.paired
    previous, user = paired[Role.PREVIOUS], paired[Role.USER]
    masks = np.array([previous, previous | paired[Role.SOURCE], user, paired[Role.TASK] | user | paired[Role.AGENT]], float)
    shares = tally(entry, masks[:, at], queries.count) / number
    return dict(zip(("bg_prev", "bg_env", "bg_user", "bg_non"), shares, strict=True))


def _carry(corpus: Corpus, cover: Floats, entry_texts: Sequence[str]) -> list[Carry]:
    """Align each entry with the unit of M that it rests on: the most alike of the two that cover it best, else the better one."""
    width = min(CARRY_CANDIDATES, cover.shape[1])
    width = min(CARRY_CANDIDATES, cover.shape[1])
    best = np.argsort(-cover, axis=1, kind="stable")[:, :width]
    covers = np.take_along_axis(cover, best, axis=1).tolist()
    found: list[Carry] = []
    for candidates, coverage, entry in zip(best.tolist(), covers, entry_texts, strict=True):
        chosen, covered, alike = (candidates[0], coverage[0], 0.0) if coverage[0] > 0.0 else (None, 0.0, 0.0)
        for candidate, share in zip(candidates, coverage, strict=True):
            if share < CARRY_COVERAGE:
                break
            like = ratio(entry, corpus.units[candidate].text, max(CARRY_FLOOR, alike))
            if like > alike:
                chosen, covered, alike = candidate, share, like
        found.append(Carry(chosen, covered, alike))
    return found


class Valued(NamedTuple):
    """What the values of one entry say."""

    features: dict[str, float]
    span_sources: int  # values, weak ones aside, that an output says before P, the user or the agent
    previous: int  # values, weak ones aside, that M says first
    orphan_numbers: list[str]  # numbers, weak ones aside, that nobody says
    known_numbers: list[str]  # numbers that an output or M says


def value_features(values: Sequence[Value], places: dict[str, Place]) -> Valued:  # noqa: C901, PLR0912  one pass, a branch a count
    """Features that rest on the values of one entry."""
    number = len(values) or 1
    env = two_env = orphan = first_user = first_prev = lost = span_sources = strong_prev = 0
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
            first_prev += 1
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
    together = max(Counter(chain.from_iterable(windows)).values()) if len(windows) > 1 else len(windows)
    features = {
        "val2_env": two_env / number,
        "val2_orph": orphan / number,
        "val_cooc": together / number,
        "val_env": env / number,
        "val_any_env": float(env > 0),
        "val_env_n": float(min(env, _COUNT_CAP)),
        "val_user": first_user / number,
        "val_prev": first_prev / number,
        "num_orphan": float(min(lost, _COUNT_CAP)),
        "values": float(len(values)),
    }
    return Valued(features, span_sources, strong_prev, orphan_numbers, known_numbers)


def row(token: dict[str, float], value: dict[str, float], style: Style) -> dict[str, float]:
    """The features of one entry, by name."""
    merged = {**token, **value, "obs": style.observation, "imper": style.imperative, "modal": style.modal, "len": style.length}
    return {name: merged[name] for name in NAMES}
