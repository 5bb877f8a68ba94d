"""From a source probability to score and verdict: what the span says against an entry is joined here, for every judge alike.

Source and refutation are two outputs: p is the judge's and stays as it is, the score is p under a cap. Pure.
"""

import re
from collections.abc import Mapping
from typing import Final

from winnow.compaction.text import one_line
from winnow.contracts.events import Entry, Evidence, Finding, Passage, Score
from winnow.contracts.vocabulary import FindingKind, ProvenanceClass, Rules, Verdict
from winnow.judging.explanation import LINE_CHARS, explain

#: Probability from which an entry is called sourced. A fleet's tau may differ; the verdict is the judge's own word.
SOURCED_FROM: Final = 0.5
#: Highest score of an entry that is contradicted or holds an orphan value: well below any tau in use, and above 0, so that a fleet
#: that wants such entries kept can still say so by tau.
CONTRADICTED_CAP: Final = 0.25
#: Kinds that cap the score.
CAPPING: Final = frozenset({FindingKind.CONTRADICTED, FindingKind.ORPHAN})
#: Characters of a claim, key or value in an explanation: they are untrusted text.
_SHOWN_CHARS: Final = 50
#: What parts one statement of an entry from the next.
_PUNCTUATION: Final = re.compile(r"[,;:()\n]+\s|[.!?]\s|(?:\A|\n)\s*[-*+]\s|\[.\]\s")


def concluded(entry: Entry, p: float, evidence: Evidence, pool: Mapping[int, Passage]) -> Score:
    """The score of an entry whose source probability is `p`.

    Args:
        entry: the entry with its findings.
        p: probability, 0 to 1, that the entry has a source; recorded as it is.
        evidence: the boundary; under `published` rules nothing caps and nothing is flagged.
        pool: passages by number, for the explanation.
    """
    findings = entry.findings if evidence.rules is Rules.WINNOW else ()
    verdict, finding = _verdict(entry, p, evidence, findings)
    capped = any(found.kind in CAPPING for found in findings)
    if finding is None:
        explanation, passages = explain(entry, verdict, pool)
    else:
        explanation, passages = told(finding, pool, entry.text)
    return Score(
        n=entry.n,
        p=p,
        score=min(p, CONTRADICTED_CAP) if capped else p,
        verdict=verdict,
        flags=tuple(dict.fromkeys(found.kind for found in findings)),
        provenance=entry.provenance,
        explanation=explanation,
        passages=passages,
    )


def _verdict(entry: Entry, p: float, evidence: Evidence, findings: tuple[Finding, ...]) -> tuple[Verdict, Finding | None]:
    """The verdict and the finding that it rests on, if any: contradicted, else said by user turns alone, else stale, else by p."""
    of_kind = {found.kind: found for found in reversed(findings)}  # of each kind the first
    contradicted = of_kind.get(FindingKind.CONTRADICTED) or of_kind.get(FindingKind.ORPHAN)
    if contradicted is not None:
        return Verdict.CONTRADICTED, contradicted
    if _said_by_user_alone(entry, p, evidence):
        return Verdict.USER_SOURCED, None
    stale = of_kind.get(FindingKind.STALE)
    if stale is not None:
        return Verdict.STALE, stale
    return Verdict.SOURCED if p >= SOURCED_FROM else Verdict.UNSOURCED, None


def _said_by_user_alone(entry: Entry, p: float, evidence: Evidence) -> bool:
    """Only user turns support the entry, and they do not survive compaction."""
    if ProvenanceClass.USER not in entry.sources or evidence.rules is not Rules.WINNOW or evidence.user_turns_survive:
        return False
    others = {ProvenanceClass.ENVIRONMENT, ProvenanceClass.DERIVED}
    if p >= SOURCED_FROM:
        others.add(ProvenanceClass.PREVIOUS)
    return others.isdisjoint(entry.sources)


def told(finding: Finding, pool: Mapping[int, Passage], text: str) -> tuple[str, tuple[int, ...]]:
    """A finding in one line that a person can check, and the passages of `pool` that hold what it rests on. `text` is the entry's."""
    claim, key, said = (_shown(text) for text in (finding.claim, finding.key, finding.said))
    place = _place(finding)
    match finding.kind:
        case FindingKind.CONTRADICTED:
            line = f"contradicted: {_shown(_clause(text, finding.claim))}; {place} gives {said} for {key or 'the same key'}"
        case FindingKind.ORPHAN:
            line = f"contradicted: {claim} is said nowhere and follows from no values of the entry"
            line += f"; {place} gives {said}" if said else ""
        case FindingKind.STALE:
            line = f"stale: {claim} is listed as open; {place} shows it done: {said}"
        case FindingKind.REWRITTEN_CONSTRAINT:
            line = f"rewritten: {claim}; {place} says {said}"
        case _:
            line = f"invented: neither task nor user asks for {claim}"
    cited = tuple(
        passage.id
        for passage in pool.values()
        if finding.by is ProvenanceClass.ENVIRONMENT and passage.message == finding.message and passage.start <= finding.at < passage.end
    )
    return one_line(line, LINE_CHARS), cited


def _clause(text: str, claim: str) -> str:
    """The part of an entry, between punctuation, that states a claim; the claim itself where it does not stand there word for word."""
    at = text.lower().find(claim.lower())
    if not claim or at < 0:
        return claim
    end = at + len(claim)
    first = max(0, at - _SHOWN_CHARS, *(found.end() for found in _PUNCTUATION.finditer(text, max(0, at - _SHOWN_CHARS), at)))
    last = _PUNCTUATION.search(text, end, end + _SHOWN_CHARS)
    clause = text[first : last.start() if last else end + _SHOWN_CHARS].strip()
    return clause if len(clause) <= _SHOWN_CHARS else claim


def _place(finding: Finding) -> str:
    """Who says so, by number."""
    match finding.by:
        case ProvenanceClass.ENVIRONMENT:
            return f"output #{finding.message}" + (f" ({_shown(finding.tool)})" if finding.tool else "")
        case ProvenanceClass.PREVIOUS:
            return "the previous summary" if finding.message is None else f"entry {finding.message} of the previous summary"
        case ProvenanceClass.USER:
            return f"user turn #{finding.message}"
        case _:
            return "the task"


def _shown(text: str | None) -> str:
    """An untrusted piece for a line."""
    return one_line(text or "", _SHOWN_CHARS)
