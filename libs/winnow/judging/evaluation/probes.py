"""Questions put to a judge again: changed boundaries, the same request, the entries in another order."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from winnow.compaction.parse import parse
from winnow.compaction.segments import Entry
from winnow.contracts.deadline import Deadline
from winnow.contracts.vocabulary import Outcome
from winnow.judging.evaluation.labelled import Label, LabelledBoundary
from winnow.judging.evaluation.metrics import Floats
from winnow.judging.evaluation.samples import Judged
from winnow.judging.port import Judge, JudgeCall
from winnow.judging.stress import TRUTHS, Chance, Stress, Truth, stressed

#: Boundaries that a remote judge is asked about at the same time.
CONCURRENCY: Final = 4

#: The judge for a boundary: one and the same, or that of the boundary's fold.
JudgeOf = Callable[[LabelledBoundary], Judge]
#: A time limit for one boundary, from now.
Limit = Callable[[], Deadline]
#: Told after each boundary: how many are done.
Told = Callable[[int], None]


class Asked(NamedTuple):
    """Judged boundaries with what the calls took."""

    judged: list[Judged]
    calls: list[JudgeCall]
    unjudged: int  # boundaries without any answer; their entries are unscored


async def ask(judge_of: JudgeOf, boundaries: Sequence[LabelledBoundary], *, limit: Limit, told: Told = lambda _: None) -> Asked:
    """Ask a judge about boundaries, a few at a time where it is remote, and give the answers in their order."""
    gate = asyncio.Semaphore(CONCURRENCY)
    done = 0

    async def one(boundary: LabelledBoundary) -> tuple[Judged, Sequence[JudgeCall], bool]:
        nonlocal done
        async with gate:
            request = boundary.request()
            answer = await judge_of(boundary).judge(request, limit())
        done += 1
        told(done)
        await asyncio.sleep(0)
        return Judged(boundary, request.evidence, answer.scores), answer.calls, answer.outcome is Outcome.UNJUDGED

    found = await asyncio.gather(*(one(boundary) for boundary in boundaries))
    return Asked([row[0] for row in found], [call for row in found for call in row[1]], sum(row[2] for row in found))


def by_entry(judged: Sequence[Judged]) -> dict[tuple[str, int], tuple[float, float]]:
    """Give p and score of every labelled entry, by boundary and number; NaN where it is unscored."""
    found = {}
    for boundary, _, scores in judged:
        of = {score.n: score for score in scores}
        for label in boundary.labels:
            one = of.get(label.n)
            p = np.nan if one is None or one.p is None else one.p
            score = np.nan if one is None or one.score is None else one.score
            found[boundary.id, label.n] = (p, score)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Stressing:
    """What one change did: entries for which the truth is certain, and how many were kept before and after."""

    kind: Stress
    truth: Truth
    n: int
    kept: int  # score >= tau after the change; for a wrong value that is the capped score
    kept_by_p: int
    before: int  # the same entries, unchanged, at the same tau


async def stress(
    judge_of: JudgeOf,
    boundaries: Sequence[LabelledBoundary],
    natural: Mapping[tuple[str, int], tuple[float, float]],
    *,
    tau: float,
    chance: Callable[[], Chance],
    limit: Limit,
    told: Told = lambda _: None,
) -> list[Stressing]:
    """Judge changed boundaries, every change by itself.

    `natural` are the scores of the unchanged ones, as `by_entry` gives them; `chance` makes a freshly seeded generator for each change.
    """
    found = []
    done = 0
    for kind in Stress:
        changed = list(stressed(kind, boundaries, chance()))
        cases = [case.case for case in changed if isinstance(case.case, LabelledBoundary)]
        wanted = [set(case.entries) for case in changed]
        asked = await ask(judge_of, cases, limit=limit, told=partial(_onward, told, done))
        done += len(cases)
        n = kept = kept_by_p = before = 0
        for (boundary, _, scores), numbers in zip(asked.judged, wanted, strict=True):
            of = {score.n: score for score in scores}
            for number in numbers:
                one = of.get(number)
                n += 1
                kept += one is None or one.score is None or one.score >= tau
                kept_by_p += one is None or one.p is None or one.p >= tau
                before += not natural[boundary.id, number][1] < tau
        found.append(Stressing(kind=kind, truth=TRUTHS[kind], n=n, kept=kept, kept_by_p=kept_by_p, before=before))
    return found


def _onward(told: Told, base: int, done: int) -> None:
    """Tell progress on top of what was done before."""
    told(base + done)


def shuffled(boundary: LabelledBoundary, chance: Chance) -> tuple[LabelledBoundary, dict[int, int]] | None:
    """The boundary with the entries of each section in another order, and for each entry its number there.

    Only entries that stand alone change places: none that is nested or has something nested under it. None where the changed summary does
    not parse into the same entries, or no two entries can change places.
    """
    parsed = parse(boundary.candidate, profile=boundary.profile, host=boundary.host, rules=boundary.rules, pins=boundary.pins)
    places: dict[str, list[Entry]] = {}
    bound = {entry.parent for entry in parsed.entries} | {entry.lead_in for entry in parsed.entries}
    for entry in parsed.entries:
        if entry.parent is None and entry.lead_in is None and entry.n not in bound:
            places.setdefault(entry.section, []).append(entry)
    goes: dict[int, Entry] = {}
    for alike in places.values():
        order = list(alike)
        chance.shuffle(order)
        goes.update({slot.n: entry for slot, entry in zip(alike, order, strict=True)})
    if all(slot == entry.n for slot, entry in goes.items()):
        return None
    data = boundary.candidate.encode()
    parts: list[bytes] = []
    at = 0
    for slot in sorted(parsed.entries, key=lambda entry: entry.span):
        start, end = slot.span[0], slot.span[0] + len(_core(data, slot))
        moved = goes.get(slot.n, slot)
        parts += (data[at:start], _core(data, moved))
        at = end
    parts.append(data[at:])
    summary = b"".join(parts).decode("utf-8", "surrogatepass")
    number = {entry.n: slot for slot, entry in goes.items()}
    number |= {entry.n: entry.n for entry in parsed.entries if entry.n not in number}
    again = parse(summary, profile=parsed.profile, rules=boundary.rules, pins=boundary.pins)
    texts = {entry.n: entry.text for entry in again.entries}
    if len(again.entries) != len(parsed.entries) or any(texts[number[entry.n]] != entry.text for entry in parsed.entries):
        return None
    labels = tuple(_at(label, number[label.n]) for label in boundary.labels)
    return replace(boundary, candidate=summary, profile=parsed.profile, host=None, labels=labels, entries=()), number


def _core(data: bytes, entry: Entry) -> bytes:
    """An entry's bytes without the line ends and blank lines behind it, which stay in their place."""
    return data[entry.span[0] : entry.span[1]].rstrip()


def _at(label: Label, n: int) -> Label:
    """The label of the entry that has another number now."""
    return replace(label, n=n)


class Again(NamedTuple):
    """Scores of the same entries, asked again: one column an entry, one row an asking; the first is the one that counts."""

    scores: Floats
    what: str

    def changed(self, tau: float) -> Floats:
        """Whether an entry's answer at the threshold ever changes, 0 or 1."""
        kept = ~(self.scores < tau)
        changed: Floats = np.any(kept != kept[:1], axis=0).astype(float)
        return changed

    def moved(self) -> float:
        """The largest difference of two scores of one entry."""
        if not self.scores.size:
            return 0.0
        return float(np.nan_to_num(np.ptp(self.scores, axis=0)).max())


async def in_other_order(
    judge_of: JudgeOf,
    boundaries: Sequence[LabelledBoundary],
    natural: Mapping[tuple[str, int], tuple[float, float]],
    *,
    chance: Chance,
    limit: Limit,
    told: Told = lambda _: None,
) -> tuple[Again, int]:
    """Judge every boundary with its entries in another order; also the number of boundaries that could not be reordered."""
    found = [shuffled(boundary, chance) for boundary in boundaries]
    changed = [(one[0], one[1]) for one in found if one is not None]
    asked = await ask(judge_of, [boundary for boundary, _ in changed], limit=limit, told=told)
    columns = []
    for (boundary, _, scores), (_, number) in zip(asked.judged, changed, strict=True):
        of = {score.n: score.score for score in scores}
        was = {now: before for before, now in number.items()}
        for label in boundary.labels:
            score = of.get(label.n)
            columns.append((natural[boundary.id, was[label.n]][1], np.nan if score is None else score))
    return Again(np.array(columns, float).reshape(-1, 2).T, "entries shuffled within their sections"), len(found) - len(changed)
