"""A candidate summary beside what was committed of it: stretches in the order of the candidate, each entry with why it stayed or went."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from services.gateway.console.views import wording
from services.gateway.console.views.text import MOST_CHARS, visible
from winnow.contracts.events import EntryDecision, Finding, Passage, Score
from winnow.contracts.vocabulary import Decision, DecisionReason, Mode
from winnow.storage.boundaries import Boundary
from winnow.storage.entries import EntryHistory

#: Characters of one boundary's texts that a page shows: more is no page that anybody reads, and the originals have all of it.
PAGE_CHARS = 300_000
#: Entries of one boundary that a page shows, with all that is known of each.
MOST_ENTRIES = 400
#: Characters of a passage that a page shows.
PASSAGE_CHARS = 2_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of an entry, told by a sign, a word and a class of the stylesheet: never by colour alone."""

    sign: str
    word: str
    css: str


KEPT = Fate(sign="✓", word="kept", css="kept")
PRUNED = Fate(sign="✕", word="pruned", css="pruned")
WOULD_GO = Fate(sign="✕", word="would be pruned", css="pruned")
OPEN = Fate(sign="…", word="undecided", css="undecided")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A passage of evidence."""

    id: int
    message: int
    tool: str | None
    origin: str
    bm25: float | None
    #: The explanation rests on it.
    cited: bool
    text: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A finding in words."""

    kind: str
    claim: Markup
    key: Markup | None
    said: Markup | None
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """One entry and all that is known of it."""

    n: int
    fate: Fate
    #: In a word, why it stayed or went, where that is not its score.
    aside: str
    section: Markup
    section_class: str
    score: float | None
    pinned_by: str | None
    verdict: str
    reason: str
    provenance: str
    root: str | None
    explanation: Markup
    previous_entry: int | None
    previous_similarity: float
    findings: tuple[Told, ...]
    values: tuple[tuple[Markup, str], ...]
    quotes: tuple[Quote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch of the candidate; `entry` is None between entries. `stays`: it is part of the committed summary."""

    text: Markup
    entry: EntryRow | None
    stays: bool


def stretches(candidate: bytes, history: Sequence[EntryHistory], boundary: Boundary) -> list[Stretch]:
    """The candidate, cut at its entries, as far as a page goes: the text behind its last entry stands in one piece."""
    applied = boundary.effective_mode is Mode.ENFORCE and not boundary.late
    found: list[Stretch] = []
    room = PAGE_CHARS
    for start, end, entry in _cuts(len(candidate), sorted(history, key=lambda h: (h.entry.span, h.entry.n))[:MOST_ENTRIES]):
        text = candidate[start:end].decode("utf-8", "replace")
        if entry is None and not text.strip():
            continue
        most = max(0, min(MOST_CHARS, room))
        room -= min(len(text), most)
        row = None if entry is None else _row(entry, boundary, applied=applied)
        stays = row is None or row.fate is not PRUNED
        found.append(Stretch(text=visible(text.strip("\n"), most), entry=row, stays=stays))
    return found


def _cuts(size: int, history: Sequence[EntryHistory]) -> Iterator[tuple[int, int, EntryHistory | None]]:
    """Byte offsets that cover the candidate once; `history` is in order of spans. No text stands twice where spans overlap."""
    at = 0
    for entry in history:
        start = min(max(at, entry.entry.span[0]), size)
        end = min(max(start, entry.entry.span[1]), size)
        if start > at:
            yield at, start, None
        yield start, end, entry
        at = end
    if at < size:
        yield at, size, None


def fate_of(decision: EntryDecision | None, *, applied: bool) -> Fate:
    """What became of an entry; `applied`: what was decided to go has gone."""
    if decision is None:
        return OPEN
    if decision.decision is Decision.KEPT:
        return KEPT
    return PRUNED if applied else WOULD_GO


def _row(history: EntryHistory, boundary: Boundary, *, applied: bool) -> EntryRow:
    entry, said, decision = history.entry, history.score, history.decision
    verdict = decision.verdict if decision else said.verdict if said else None
    root = wording.ROOTS[decision.root_source] if decision else None
    explanation = decision.explanation if decision else said.explanation if said else ""
    return EntryRow(
        n=entry.n,
        fate=fate_of(decision, applied=applied),
        aside="" if decision is None or decision.reason is DecisionReason.SCORE else wording.words(decision.reason),
        section=visible(entry.section, 200),
        section_class=wording.SECTIONS[entry.section_class],
        score=decision.score if decision else said.score if said else None,
        pinned_by=entry.pinned_by,
        verdict="not judged" if verdict is None else wording.VERDICTS[verdict],
        reason=_reason(decision, boundary),
        provenance=wording.PROVENANCE[entry.provenance],
        root=root,
        explanation=visible(explanation, 1_000),
        previous_entry=entry.previous_entry,
        previous_similarity=entry.previous_similarity,
        findings=tuple(_told(f) for f in entry.findings),
        values=tuple((visible(v.value, 120), wording.PROVENANCE[v.origin]) for v in entry.values),
        quotes=tuple(_quotes(history, said)),
    )


def _reason(decision: EntryDecision | None, boundary: Boundary) -> str:
    if decision is None:
        return "not decided yet"
    if decision.reason is DecisionReason.SCORE and decision.score is not None and boundary.tau is not None:
        side = "at least" if decision.score >= boundary.tau else "below"
        return f"score {decision.score:.2f} is {side} the threshold of {boundary.tau:g}"
    return wording.REASONS[decision.reason]


def _told(finding: Finding) -> Told:
    who = "" if finding.by is None else wording.PROVENANCE[finding.by]
    place = "" if finding.message is None else f", {'entry' if finding.by == 'previous' else 'message'} {finding.message}"
    tool = "" if finding.tool is None else f", tool {finding.tool}"
    return Told(
        kind=wording.FINDINGS[finding.kind],
        claim=visible(finding.claim, 200),
        key=None if finding.key is None else visible(finding.key, 200),
        said=None if finding.said is None else visible(finding.said, 200),
        where=f"{who}{place}{tool}",
    )


def _quotes(history: EntryHistory, said: Score | None) -> Iterator[Quote]:
    cited = set(said.passages) if said is not None else set()
    scores = {link.passage: link.bm25 for link in history.entry.evidence}
    for passage in history.passages:
        yield _quote(passage, scores.get(passage.id), cited=passage.id in cited)


def _quote(passage: Passage, bm25: float | None, *, cited: bool) -> Quote:
    return Quote(
        id=passage.id,
        message=passage.message,
        tool=passage.tool,
        origin=wording.words(passage.origin),
        bm25=bm25,
        cited=cited,
        text=visible(passage.text, PASSAGE_CHARS),
    )
