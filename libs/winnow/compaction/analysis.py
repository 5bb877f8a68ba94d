"""From a parsed candidate to entries with evidence, provenance and features: the retriever's pure core."""

from collections.abc import Sequence
from dataclasses import dataclass

from winnow.compaction import text as texts
from winnow.compaction.claims.findings import Found, find
from winnow.compaction.corpus import Corpus, read, streams, units_of
from winnow.compaction.features import FEATURES_VERSION, row, stored, token_features, value_features
from winnow.compaction.lookup import Lookup
from winnow.compaction.passages import chunks
from winnow.compaction.postings import Queries
from winnow.compaction.provenance import origin, supports, unsupported, user_is_source
from winnow.compaction.retrieval import Hit
from winnow.compaction.segments import Parsed
from winnow.compaction.style import styles_of
from winnow.compaction.values import values_of
from winnow.contracts.events import Entry, EntryEvidence, Message, Passage, ValueOrigin
from winnow.contracts.vocabulary import Rules

__all__ = ["FEATURES_VERSION", "Analysis", "analyse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What the retriever says of a boundary."""

    entries: tuple[Entry, ...]
    passages: tuple[Passage, ...]
    warnings: tuple[str, ...]


def analyse(
    parsed: Parsed,
    *,
    task: str,
    previous: Parsed | None,
    history: Sequence[Message],
    retained: Sequence[Message],
    user_turns_survive: bool,
    rules: Rules,
    findings: bool = True,
) -> Analysis:
    """Find evidence, provenance and features for every entry of a candidate summary.

    Pure and deterministic to the last bit. Linear in the length of the span and in the number of entries; text of one entry changes
    nothing of another.

    Args:
        parsed: the candidate.
        task: P, context and never a source.
        previous: M, parsed; None where there is none.
        history: H.
        retained: R.
        user_turns_survive: user turns stay visible after compaction, so that they need not be a source.
        rules: `published` counts every environment message as a source, whatever its origin, and no user turn.
        findings: look for what the texts say against the entries; training on features alone does without.
    """
    if not parsed.entries:
        return Analysis(entries=(), passages=(), warnings=())
    messages = (*history, *retained)
    entry_texts = [texts.normalise(texts.strip_marker(entry.text)) for entry in parsed.entries]
    queries = Queries.of_stream(texts.stream(entry_texts))
    corpus = read(task, units_of(previous), messages, rules)
    numbers = streams(corpus, queries)
    token = token_features(corpus, numbers, queries, entry_texts)
    values = [values_of(text) for text in entry_texts]
    lookup = Lookup(corpus, numbers, queries, values)
    pool, cited = _pool(corpus, token.hits)
    styles = styles_of(entry_texts)
    against = Found([()] * len(parsed.entries), capped=False)
    if findings and rules is Rules.WINNOW:
        against = find(parsed.entries, entry_texts, styles, corpus)
    from_users = user_is_source(rules, user_turns_survive=user_turns_survive)
    unit_numbers = [unit.n for unit in corpus.units]
    keys = {} if previous is None else {entry.n: entry.key for entry in previous.entries}
    entries: list[Entry] = []
    origins: dict[str, ValueOrigin] = {}  # by the value as written: many entries name the same
    valued = [value_features(of_entry, lookup) for of_entry in values]
    rows = [
        row(of_tokens, aligned, said.features, style, introduces=text.rstrip().endswith(":"))
        for of_tokens, aligned, said, style, text in zip(token.rows, token.aligned, valued, styles, entry_texts, strict=True)
    ]
    columns = zip(parsed.entries, values, valued, rows, stored(rows), token.carry, cited, against.findings, strict=True)
    for entry, of_entry, said, features, kept, carry, evidence, found in columns:
        sources = supports(features, said, carry, user_is_source=from_users)
        for value in of_entry:
            if value.shown not in origins:
                origins[value.shown] = origin(value, lookup.places[value.needle], messages, unit_numbers)
        entries.append(
            Entry(
                n=entry.n,
                key=entry.key,
                parent=entry.parent,
                lead_in=entry.lead_in,
                section=entry.section,
                section_class=entry.section_class,
                text=entry.text,
                span=entry.span,
                pinned_by=entry.pinned_by,
                truncated=entry.truncated,
                evidence=evidence,
                provenance=sources[0] if sources else unsupported(of_entry, lookup.places, features),
                values=tuple([origins[value.shown] for value in of_entry]),
                previous_entry=None if carry.unit is None else unit_numbers[carry.unit],
                previous_key=None if carry.unit is None else keys.get(unit_numbers[carry.unit] or 0),
                previous_similarity=min(1.0, max(carry.coverage, carry.ratio)),
                sources=sources,
                findings=found,
                features=kept,
            )
        )
    return Analysis(
        entries=tuple(entries),
        passages=pool,
        warnings=_warnings(values_by_tokens=lookup.capped, retrieval_capped=token.capped, refutation_capped=against.capped),
    )


def _warnings(*, values_by_tokens: bool, retrieval_capped: bool, refutation_capped: bool) -> tuple[str, ...]:
    """What was done by a cheaper road because entries and span together are too large."""
    found: list[str] = []
    if values_by_tokens:
        found.append("values_by_tokens: too many values over too long a span; the last ones were looked up by their tokens")
    if retrieval_capped:
        found.append("retrieval_capped: too many entries over too long a span; the most frequent tokens were left out")
    if refutation_capped:
        found.append("refutation_capped: too many entries over too long a span; some values were not compared with what outputs say")
    return tuple(found)


def _pool(corpus: Corpus, hits: list[list[Hit]]) -> tuple[tuple[Passage, ...], list[tuple[EntryEvidence, ...]]]:
    """Widen the retrieved passages to their chunks, pool them once each in order of the span, and cite them by number."""
    wanted = {passage for of_entry in hits for passage, _ in of_entry}
    outputs = {output.message: output for output in corpus.outputs}
    number: dict[int, int] = {}  # of the chunk that encloses a passage
    pool: list[Passage] = []
    for first, end in chunks(corpus.passages):
        if wanted.isdisjoint(range(first, end)):
            continue
        number.update(dict.fromkeys(range(first, end), len(pool) + 1))
        span, end_at = corpus.passages[first], corpus.passages[end - 1].end
        output = outputs[span.message]
        pool.append(
            Passage(
                id=len(pool) + 1,
                message=corpus.messages[span.message].i,
                tool=output.tool,
                origin=output.origin,
                start=span.start,
                end=end_at,
                text=output.text[span.start : end_at],
            )
        )
    cited: list[tuple[EntryEvidence, ...]] = []
    for of_entry in hits:
        best: dict[int, float] = {}
        for passage, score in of_entry:
            best.setdefault(number[passage], score)
        cited.append(tuple([EntryEvidence(passage=at, rank=rank, bm25=bm25) for rank, (at, bm25) in enumerate(best.items(), 1)]))
    return tuple(pool), cited
