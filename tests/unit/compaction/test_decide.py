"""The decision for each entry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.compaction.carry import Root
from winnow.compaction.decide import Judged, fates, without
from winnow.contracts.vocabulary import Decision, DecisionReason, RootSource, Rules, Verdict

SOURCED, LAUNDERED = Root(source=RootSource.ENVIRONMENT), Root(source=RootSource.NONE, inherited_unsourced=True)


def judged(
    score: float | None,
    *,
    n: int = 1,
    above: tuple[int, ...] = (),
    pinned_by: str | None = None,
    verdict: Verdict = Verdict.SOURCED,
    root: Root = SOURCED,
    stale: bool = False,
) -> Judged:
    """An entry with one thing worth testing."""
    return Judged(n=n, above=above, span=(n, n + 1), pinned_by=pinned_by, score=score, verdict=verdict, root=root, stale=stale)


def fate(entry: Judged, rules: Rules = Rules.WINNOW) -> tuple[Decision, DecisionReason]:
    """Decide one entry alone at tau 0.5."""
    (found,) = fates([entry], tau=0.5, rules=rules)
    return found.decision, found.reason


def test_tau_is_inclusive() -> None:
    """An entry at tau exactly is kept."""
    assert fate(judged(0.5)) == (Decision.KEPT, DecisionReason.SCORE)
    assert fate(judged(0.49999)) == (Decision.PRUNED, DecisionReason.SCORE)


def test_no_usable_answer_keeps() -> None:
    """An entry without a score is kept."""
    assert fate(judged(None, verdict=Verdict.UNSCORED)) == (Decision.KEPT, DecisionReason.UNSCORED)


@pytest.mark.parametrize(
    ("entry", "winnow", "published"),
    [
        (judged(0.1, pinned_by="host"), (Decision.KEPT, DecisionReason.PINNED), (Decision.PRUNED, DecisionReason.SCORE)),
        (judged(0.9, root=LAUNDERED), (Decision.PRUNED, DecisionReason.INHERITED_UNSOURCED), (Decision.KEPT, DecisionReason.SCORE)),
        (judged(0.1, verdict=Verdict.USER_SOURCED), (Decision.KEPT, DecisionReason.USER_SOURCED), (Decision.PRUNED, DecisionReason.SCORE)),
    ],
)
def test_published_rules_know_neither_pins_nor_roots_nor_user_sources(
    entry: Judged, winnow: tuple[Decision, DecisionReason], published: tuple[Decision, DecisionReason]
) -> None:
    """Under `published` only the score decides; under `winnow` pins, roots and user turns do too."""
    assert fate(entry) == winnow
    assert fate(entry, Rules.PUBLISHED) == published


def test_stale_work_goes_only_where_the_operating_point_says_so() -> None:
    """Open work that was done is kept by its score unless stale entries are pruned; then it goes, pins and `published` rules aside."""
    done = judged(0.9, verdict=Verdict.STALE, stale=True)
    assert fate(done) == (Decision.KEPT, DecisionReason.SCORE)
    (found,) = fates([done], tau=0.5, rules=Rules.WINNOW, prune_stale=True)
    assert (found.decision, found.reason) == (Decision.PRUNED, DecisionReason.STALE)
    asked = judged(0.1, verdict=Verdict.USER_SOURCED, stale=True)
    assert fate(asked) == (Decision.KEPT, DecisionReason.USER_SOURCED)
    for entry, rules in ((judged(0.9, stale=True, pinned_by="host"), Rules.WINNOW), (judged(0.9, stale=True), Rules.PUBLISHED)):
        (found,) = fates([entry], tau=0.5, rules=rules, prune_stale=True)
        assert found.decision is Decision.KEPT


def test_parents_of_kept_entries_stay_at_any_depth() -> None:
    """A parent below tau stays as scaffold while a grandchild is kept, and goes with its last child."""
    tree = [judged(0.1, n=1), judged(0.1, n=2, above=(1,)), judged(0.9, n=3, above=(2,)), judged(0.1, n=4), judged(0.2, n=5, above=(4,))]
    found = fates(tree, tau=0.5, rules=Rules.WINNOW)
    assert [(f.decision.value, f.reason.value) for f in found] == [
        ("kept", "scaffold"), ("kept", "scaffold"), ("kept", "score"), ("pruned", "score"), ("pruned", "score"),
    ]  # fmt: skip


def test_published_rules_know_no_scaffold() -> None:
    """Under `published` a parent below tau goes although its child stays."""
    found = fates([judged(0.1, n=1), judged(0.9, n=2, above=(1,))], tau=0.5, rules=Rules.PUBLISHED)
    assert [f.decision for f in found] == [Decision.PRUNED, Decision.KEPT]


def test_an_unjudged_boundary_keeps_everything() -> None:
    """Where no judge answered in time, nothing is pruned."""
    (found,) = fates([judged(0.0)], tau=0.5, rules=Rules.WINNOW, judged=False)
    assert (found.decision, found.reason) == (Decision.KEPT, DecisionReason.NOT_JUDGED)


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=8))
def test_without_removes_exactly_the_spans(candidate: bytes, cuts: list[int]) -> None:
    """What is left and what was cut, interleaved, is the candidate."""
    points = sorted({min(c, len(candidate)) for c in cuts})
    spans = [(a, b) for a, b in zip(points[::2], points[1::2], strict=False) if a < b]
    left = without(candidate, spans)
    assert len(left) == len(candidate) - sum(b - a for a, b in spans)
    expected = bytes(byte for i, byte in enumerate(candidate) if not any(a <= i < b for a, b in spans))
    assert left == expected


def test_without_refuses_spans_out_of_order() -> None:
    """Overlapping or foreign spans are refused, rather than cutting something else."""
    for spans in ([(2, 4), (3, 5)], [(0, 9)], [(3, 2)]):
        with pytest.raises(ValueError, match="span"):
            without(b"abcdef", spans)
