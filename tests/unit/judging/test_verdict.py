"""Score and verdict from a probability and what the span says against the entry."""

import pytest

from tests.unit.judging.evidence import entry, evidence
from winnow.contracts.events import Finding, Passage
from winnow.contracts.vocabulary import FindingKind, ProvenanceClass, Rules, Verdict
from winnow.judging.explanation import LINE_CHARS
from winnow.judging.verdict import CONTRADICTED_CAP, concluded

ENV, USER = ProvenanceClass.ENVIRONMENT, ProvenanceClass.USER
OTHER = Finding(kind=FindingKind.CONTRADICTED, claim="480", key="total", said="490", by=ENV, message=9, tool="calculate", at=25)
ORPHAN = Finding(kind=FindingKind.ORPHAN, claim="HAT139")
STALE = Finding(kind=FindingKind.STALE, claim="run `pytest`", said="12 passed", by=ENV, message=7, tool="shell")
FLAG = Finding(kind=FindingKind.REWRITTEN_CONSTRAINT, claim="amount: within 48 hours", said="within 24 hours", by=ProvenanceClass.TASK)
INVENTED = Finding(kind=FindingKind.INVENTED_DELIVERABLE, claim="write a report")
POOL = {
    1: Passage(id=1, message=9, start=0, end=20, text="x" * 20),
    2: Passage(id=2, message=9, start=20, end=40, text="y" * 20),
    3: Passage(id=3, message=7, start=0, end=40, text="z" * 40),
}


def said(p, *findings, rules=Rules.WINNOW, user_turns_survive=False, sources=(ENV,)):
    one = entry(sources=sources, provenance=ENV, findings=findings)
    return concluded(one, p, evidence(one, rules=rules, user_turns_survive=user_turns_survive, passages=tuple(POOL.values())), POOL)


@pytest.mark.parametrize("finding", [OTHER, ORPHAN])
def test_a_wrong_value_caps_the_score_and_p_stays(finding):
    """A contradicted or orphan value caps the score below tau; p is recorded as it was, and a lower p stays the score."""
    found = said(0.97, finding)
    assert (found.p, found.score, found.verdict, found.flags) == (0.97, CONTRADICTED_CAP, Verdict.CONTRADICTED, (finding.kind,))
    assert said(0.1, finding).score == 0.1


def test_both_values_and_their_place_are_told():
    """The explanation has both values, the key, and the output; the passage that holds it is cited, and no other of that output."""
    found = said(0.97, OTHER)
    assert found.explanation == "contradicted: 480; output #9 (calculate) gives 490 for total"
    assert found.passages == (2,)
    assert said(0.97, ORPHAN).explanation.startswith("contradicted: HAT139 is said nowhere")


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("- Three tickets; the total is 480, to be paid today", "the total is 480"),
        ("- [ ] Pay 480", "Pay 480"),
        ("- Paid 480. Then the card was refused", "Paid 480"),
        ("- " + "long " * 20 + "480 " + "long " * 20, "480"),
        ("- nothing", "480"),
    ],
)
def test_the_clause_of_the_entry_is_told(text, clause):
    """What the entry says is quoted up to its punctuation; where that is long, or stands there otherwise, the value alone."""
    one = entry(provenance=ENV, findings=(OTHER,)).model_copy(update={"text": text})
    found = concluded(one, 0.9, evidence(one, passages=tuple(POOL.values())), POOL)
    assert found.explanation == f"contradicted: {clause}; output #9 (calculate) gives 490 for total"


def test_stale_is_told_and_caps_nothing():
    """Open work that was done is `stale`, with the output that shows it; the score stays p."""
    found = said(0.8, STALE)
    assert (found.score, found.verdict, found.flags, found.passages) == (0.8, Verdict.STALE, (FindingKind.STALE,), (3,))
    assert found.explanation == "stale: run `pytest` is listed as open; output #7 (shell) shows it done: 12 passed"


def test_flags_are_told_beside_the_verdict():
    """A rewritten constraint and an invented deliverable change neither score nor verdict."""
    found = said(0.8, FLAG, INVENTED)
    assert (found.score, found.verdict) == (0.8, Verdict.SOURCED)
    assert found.flags == (FindingKind.REWRITTEN_CONSTRAINT, FindingKind.INVENTED_DELIVERABLE)


def test_what_only_a_user_said_stays_the_users():
    """An entry that user turns alone support is `user_sourced` also where its work is done; the flag tells that."""
    found = said(0.1, STALE, sources=(USER,))
    assert (found.verdict, found.flags) == (Verdict.USER_SOURCED, (FindingKind.STALE,))


def test_the_worst_comes_first():
    """A contradiction is the verdict whatever else was found; each kind is flagged once."""
    found = said(0.9, STALE, OTHER, OTHER)
    assert (found.verdict, found.flags) == (Verdict.CONTRADICTED, (FindingKind.STALE, FindingKind.CONTRADICTED))


def test_published_rules_judge_by_p_alone():
    """Under `published` rules nothing caps and nothing is flagged."""
    found = said(0.9, OTHER, STALE, rules=Rules.PUBLISHED)
    assert (found.score, found.verdict, found.flags) == (0.9, Verdict.SOURCED, ())


def test_every_finding_is_one_short_line():
    """Whatever texts a finding holds, and whoever said it, its line is printable and short."""
    for by in (None, *ProvenanceClass):
        for kind in FindingKind:
            one = Finding(kind=kind, claim="c" * 80, key="k" * 80, said="\x1b[31m" + "s" * 70, by=by, message=1, tool="t" * 200)
            line = said(0.9, one).explanation
            assert len(line) <= LINE_CHARS
            assert line.isprintable()
