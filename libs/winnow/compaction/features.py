"""The features of entries: what the whole span says of each, as finite numbers. Their meaning is fixed by `FEATURES_VERSION`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from winnow.compaction import text as texts
from winnow.compaction.corpus import Corpus, Streams, entry_pairs
from winnow.compaction.lookup import Place
from winnow.compaction.postings import Floats, Ints, Postings, Queries
from winnow.compaction.retrieval import PLACEHOLDER, Hit, Index, top
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


@dataclass(frozen=True, slots=True)
class Carry:
    """The unit of M that an entry rests on, if any."""

    unit: int | None
    coverage: float  # share of the entry's idf mass in that unit
    ratio: float  # character-sequence ratio, 0.0 below the floor


@dataclass(frozen=True, slots=True)
class Token:
    """Features that rest on tokens, one row an entry."""

    columns: dict[str, Floats]
    hits: list[list[Hit]]
    carry: list[Carry]


def token_features(corpus: Corpus, streams: Streams, queries: Queries, entry_texts: Sequence[str]) -> Token:
    """Coverage, task subtraction, pairs, retrieval and carry-over of all entries."""
    passages, units = len(corpus.passages), len(corpus.units)
    vocabulary, count = len(queries.vocabulary), queries.count
    in_passages = corpus.passage_tokens
    source = Postings.of(streams.ids[:in_passages], streams.text[:in_passages], passages, vocabulary)
    in_units = in_passages + sum(corpus.lengths[passages : passages + units])
    unit = Postings.of(streams.ids[in_passages:in_units], streams.text[in_passages:in_units] - passages, units, vocabulary)

    df = source.document_frequency
    idf = np.log1p((passages - df + 0.5) / (df + 0.5))
    said = streams.said
    total = queries.sums(idf)
    total[total == 0.0] = 1.0  # an entry without tokens: every share is 0

    def share(mask: Floats) -> Floats:
        return queries.sums(idf * mask) / total

    columns = {
        "cov_env": share(said[Role.SOURCE].astype(float)),
        "cov_prev": share(said[Role.PREVIOUS].astype(float)),
        "cov_task": share((said[Role.TASK] | said[Role.USER]).astype(float)),
        "cov_user": share(said[Role.USER].astype(float)),
        "cov_act": share(said[Role.AGENT].astype(float)),
    }
    columns |= _pair_columns(streams, queries)
    novel = idf * ~(said[Role.TASK] | said[Role.USER])
    alone = novel * ~said[Role.AGENT]
    for name in ("cov_pass", "novel_pass", "env_only", "bm25_max", "cov_unit"):
        columns[name] = np.zeros(count)
    hits: list[list[Hit]] = [[] for _ in range(count)]
    if passages:
        index = _index(corpus, source)
        for block in source.blocks(queries):
            rows = slice(block.begin, block.end)
            for name, weights in (("cov_pass", idf), ("novel_pass", novel), ("env_only", alone)):
                columns[name][rows] = block.totals(weights[block.token] * block.first).max(axis=1) / total[rows]
            scores = index.scores(block)
            columns["bm25_max"][rows] = scores.max(axis=1)
            hits[rows] = top(scores)
    carry: list[Carry] = [Carry(None, 0.0, 0.0)] * count
    if units:
        for block in unit.blocks(queries):
            rows = slice(block.begin, block.end)
            cover = block.totals(idf[block.token] * block.first) / total[rows, None]
            columns["cov_unit"][rows] = cover.max(axis=1)
            carry[rows] = _carry(corpus, cover, entry_texts[rows])
    columns["carry"] = np.array([found.ratio for found in carry])
    return Token(columns, hits, carry)


def _index(corpus: Corpus, source: Postings) -> Index:
    """BM25 over the passages; where some have no token, over a copy with the placeholder."""
    lengths = corpus.lengths[: len(corpus.passages)]
    tokens = corpus.tokens[: corpus.passage_tokens]
    if 0 in lengths:
        filled: list[str] = []
        at = 0
        for length in lengths:
            filled.extend(tokens[at : at + length] or (PLACEHOLDER,))
            at += length
        return Index(filled, [length or 1 for length in lengths], source)
    return Index(tokens, lengths, source)


def _pair_columns(streams: Streams, queries: Queries) -> dict[str, Floats]:
    """Shares of an entry's adjacent token pairs: in M, in E or M, in user turns, in P, U or A."""
    entry, codes = entry_pairs(queries)
    number = np.bincount(entry, minlength=queries.count).astype(float)
    number[number == 0.0] = 1.0
    at: Ints = np.searchsorted(streams.pairs, codes)
    paired = streams.paired
    masks = {
        "bg_prev": paired[Role.PREVIOUS],
        "bg_env": paired[Role.PREVIOUS] | paired[Role.SOURCE],
        "bg_user": paired[Role.USER],
        "bg_non": paired[Role.TASK] | paired[Role.USER] | paired[Role.AGENT],
    }
    return {name: np.bincount(entry, mask[at], queries.count) / number for name, mask in masks.items()}


def _carry(corpus: Corpus, cover: Floats, entry_texts: Sequence[str]) -> list[Carry]:
    """Align each entry with the unit of M that it rests on: the most alike of the two that cover it best, else the better one."""
    width = min(CARRY_CANDIDATES, cover.shape[1])
    best = np.argsort(-cover, axis=1, kind="stable")[:, :width].tolist()
    found: list[Carry] = []
    for row, (candidates, entry) in enumerate(zip(best, entry_texts, strict=True)):
        covered = [(at, float(cover[row, at])) for at in candidates if cover[row, at] > 0.0]
        if not covered:
            found.append(Carry(None, 0.0, 0.0))
            continue
        chosen, alike = covered[0], 0.0
        for candidate in covered:
            if candidate[1] < CARRY_COVERAGE:
                break
            like = ratio(entry, corpus.units[candidate[0]].text, max(CARRY_FLOOR, alike))
            if like > alike:
                chosen, alike = candidate, like
        found.append(Carry(chosen[0], chosen[1], alike))
    return found


def value_features(values: Sequence[Value], places: dict[str, Place]) -> dict[str, float]:
    """Features that rest on the values of one entry."""
    number = len(values) or 1
    env = two_env = orphan = first_user = first_prev = numbers_orphan = 0
    windows: list[tuple[int, ...]] = []
    for value in values:
        place = places[value.needle]
        task, user, agent, previous, source = place.first
        known = previous is not None or source is not None
        outside = task is not None or user is not None
        two_env += known and not outside
        orphan += not known and not outside
        first = place.speaker
        env += first is Role.SOURCE or first is Role.PREVIOUS
        first_user += first is Role.USER
        first_prev += first is Role.PREVIOUS
        numbers_orphan += not known and not outside and agent is None and value.is_number
        if place.windows:
            windows.append(place.windows)
    together = max(Counter(chain.from_iterable(windows)).values(), default=0)
    return {
        "val2_env": two_env / number,
        "val2_orph": orphan / number,
        "val_cooc": together / number,
        "val_env": env / number,
        "val_any_env": float(env > 0),
        "val_env_n": float(min(env, _COUNT_CAP)),
        "val_user": first_user / number,
        "val_prev": first_prev / number,
        "num_orphan": float(min(numbers_orphan, _COUNT_CAP)),
        "values": float(len(values)),
    }


def row(token: dict[str, float], value: dict[str, float], style: Style) -> dict[str, float]:
    """The features of one entry, by name."""
    merged = token | value | {"obs": style.observation, "imper": style.imperative, "modal": style.modal, "len": style.length}
    return {name: merged[name] for name in NAMES}
