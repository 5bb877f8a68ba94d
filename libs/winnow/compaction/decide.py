"""The decision for each entry: keep iff score >= tau, pinned, or scaffold; whatever has no usable answer is kept."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from winnow.compaction.carry import Root
from winnow.contracts.vocabulary import Decision, DecisionReason, Rules, Verdict

#: tau by default, and always under `published`; inclusive (SJC keeps an entry whose score is at least .5).
DEFAULT_TAU = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One entry with all that decides its fate."""

    n: int
    #: What stays while this entry is kept: the bullet it is nested under, the line that introduces its list.
    above: tuple[int, ...]
    span: tuple[int, int]
    pinned_by: str | None
    score: float | None
    verdict: Verdict
    root: Root
    #: Listed as open although an output shows it done.
    stale: bool = False
    #: The agent asked for an entry of this wording back, earlier in the run.
    recovered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of one entry, and why."""

    n: int
    decision: Decision
    reason: DecisionReason


def fates(entries: Sequence[Judged], *, tau: float, rules: Rules, judged: bool = True, prune_stale: bool = False) -> tuple[Fate, ...]:
    """Decide every entry of a boundary. `judged` is False where the outcome is unjudged or not_a_summary: all is kept.

    `prune_stale`: work that is listed as open and was done goes, whoever asked for it. Under `published` each entry is decided by its score
    alone: no pins, no roots, no user turns, no scaffold.
    """
    if not judged:
        return tuple(Fate(n=e.n, decision=Decision.KEPT, reason=DecisionReason.NOT_JUDGED) for e in entries)
    own = {e.n: _own(e, tau, rules, prune_stale=prune_stale) for e in entries}
    if rules is Rules.PUBLISHED:
        return tuple(Fate(n=n, decision=decision, reason=reason) for n, (decision, reason) in own.items())
    kept = {n for n, (decision, _) in own.items() if decision is Decision.KEPT}
    for n in scaffold({e.n: e.above for e in entries}, kept) - kept:
        own[n] = (Decision.KEPT, DecisionReason.SCAFFOLD)
    return tuple(Fate(n=e.n, decision=own[e.n][0], reason=own[e.n][1]) for e in entries)


def _own(entry: Judged, tau: float, rules: Rules, *, prune_stale: bool) -> tuple[Decision, DecisionReason]:
    """Decide an entry by itself, before its children are looked at."""
    if entry.score is None or entry.verdict is Verdict.UNSCORED:
        return Decision.KEPT, DecisionReason.UNSCORED
    if rules is Rules.WINNOW:
        if entry.pinned_by is not None or entry.recovered:
            return Decision.KEPT, DecisionReason.RECOVERED if entry.pinned_by is None else DecisionReason.PINNED
        if entry.root.inherited_unsourced:
            return Decision.PRUNED, DecisionReason.INHERITED_UNSOURCED
        if prune_stale and entry.stale:
            return Decision.PRUNED, DecisionReason.STALE
        if entry.verdict is Verdict.USER_SOURCED:
            return Decision.KEPT, DecisionReason.USER_SOURCED
    return (Decision.KEPT if entry.score >= tau else Decision.PRUNED), DecisionReason.SCORE


def scaffold(above: Mapping[int, tuple[int, ...]], kept: Collection[int]) -> set[int]:
    """Every entry that a kept one hangs on, at any depth."""
    found: set[int] = set()
    waiting = list(kept)
    while waiting:
        for n in above.get(waiting.pop(), ()):
            if n not in found:
                found.add(n)
                waiting.append(n)
    return found


def without(candidate: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    """The candidate's bytes minus `spans` (ascending, disjoint, [start, end)). Kept bytes are identical; nothing is inserted."""
    parts: list[bytes] = []
    at = 0
    for start, end in spans:
        if not at <= start <= end <= len(candidate):
            msg = f"span [{start}, {end}) is out of order or outside the candidate"
            raise ValueError(msg)
        parts.append(candidate[at:start])
        at = end
    parts.append(candidate[at:])
    return b"".join(parts)
