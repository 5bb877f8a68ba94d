"""Candidates and answers for the client's tests."""

from winnow.client.testing import unpruned
from winnow.contracts.events import Candidate, Committed, EntryDecision, Text, sha256
from winnow.contracts.vocabulary import Decision, DecisionReason, Mode, ProvenanceClass, RootSource, SectionClass, Verdict

LINES = ("## Done\n", "- parsed a.csv: 12 rows\n", "- über-plan for later\n", "- port 3000 is taken\n")


def candidate(text: str = "".join(LINES), **fields) -> Candidate:
    return Candidate.model_validate({"fleet": "f", "run": "r", "index": 1, "candidate": text} | fields)


def decision(n: int, span: tuple[int, int], what: Decision = Decision.KEPT) -> EntryDecision:
    return EntryDecision(
        n=n,
        section="Done",
        section_class=SectionClass.OBSERVATION,
        span=span,
        decision=what,
        reason=DecisionReason.SCORE,
        score=0.1,
        verdict=Verdict.UNSOURCED,
        provenance=ProvenanceClass.NOWHERE,
        root_source=RootSource.NONE,
        explanation="no value of it was seen in an output",
    )


def pruned(asked: Candidate, request_sha256: str, *spans: tuple[int, int], **fields) -> Committed:
    """The committed event that leaves out `spans`."""
    data = asked.candidate.encode()
    for start, end in sorted(spans, reverse=True):
        data = data[:start] + data[end:]
    text = data.decode()
    decisions = tuple(decision(n, span, Decision.PRUNED) for n, span in enumerate(spans, 1))
    said = {"summary": Text.of(text), "committed_sha256": sha256(text), "decisions": decisions, "pruned": len(spans), "mode": Mode.ENFORCE}
    return unpruned(asked, request_sha256).model_copy(update=said | fields)


def line_span(n: int) -> tuple[int, int]:
    """Byte span of line `n` of the default candidate."""
    start = len("".join(LINES[:n]).encode())
    return start, start + len(LINES[n].encode())
