"""The core alone: parse, retrieve, provenance, judge, prune, without any I/O."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from statistics import median

from rank_bm25 import BM25Okapi

from tests.benchmarks.boundaries import Factory
from tests.benchmarks.figures import Figure, against
from tests.benchmarks.progress import say
from winnow.compaction import text as texts
from winnow.compaction.analysis import FEATURES_VERSION
from winnow.compaction.boundary import examine
from winnow.compaction.carry import Support, roots
from winnow.compaction.decide import DEFAULT_TAU, Judged, fates, without
from winnow.compaction.parse import PARSER_VERSION
from winnow.compaction.passages import cuts
from winnow.contracts.events import Candidate, Evidence, Message, Messages, Text
from winnow.contracts.vocabulary import Decision, MessageKind, Rules
from winnow.judging.local import score

#: Characters and entries of the large boundary of the goal.
LARGE_SPAN, LARGE_ENTRIES = 400_000, 40


def boundary(event: Candidate) -> bytes:
    """Take one boundary through the whole core and return the committed bytes."""
    found = examine(
        event.candidate,
        task=event.task,
        previous=event.previous_summary,
        history=event.history,
        retained=event.retained,
        host=event.host,
        rules=event.rules,
    )
    retained = Messages(retained=event.retained).content().decode()
    evidence = Evidence(
        fleet=event.fleet,
        run=event.run,
        agent=event.agent,
        boundary_id=event.boundary_id,
        request_sha256=event.candidate_sha256,
        candidate_sha256=event.candidate_sha256,
        operating_point=1,
        index=event.index,
        boundary_at=datetime(2026, 11, 30, tzinfo=UTC),
        mode=event.mode,
        rules=event.rules,
        host=event.host,
        profile=found.parsed.profile,
        user_turns_survive=found.user_turns_survive,
        not_a_summary=found.parsed.outcome,
        task=Text.of(event.task),
        previous=None if event.previous_summary is None else Text.of(event.previous_summary),
        retained=Text.of(retained),
        passages=found.analysis.passages,
        entries=found.analysis.entries,
        parser_version=PARSER_VERSION,
        features_version=FEATURES_VERSION,
        messages_sha256=event.candidate_sha256,
    )
    scores = {s.n: s for s in score(evidence)}
    supports = [
        Support(n=e.n, sources=e.sources, previous_key=e.previous_key, supported=(scores[e.n].score or 0.0) >= DEFAULT_TAU)
        for e in evidence.entries
    ]
    found_roots = roots(supports, {})
    judged = [
        Judged(
            n=e.n,
            above=tuple(n for n in (e.parent, e.lead_in) if n is not None),
            span=e.span,
            pinned_by=e.pinned_by,
            score=scores[e.n].score,
            verdict=scores[e.n].verdict,
            root=found_roots[e.n],
        )
        for e in evidence.entries
    ]
    decided = fates(judged, tau=DEFAULT_TAU, rules=Rules.WINNOW)
    gone = {f.n for f in decided if f.decision is Decision.PRUNED}
    return without(event.candidate.encode(), [e.span for e in evidence.entries if e.n in gone])


def library(event: Candidate) -> None:
    """Retrieve with rank-bm25 alone, as a plain program would: tokens, index, scores for each entry."""
    outputs = [m.text for m in (*event.history, *event.retained) if m.kind is MessageKind.ENVIRONMENT]
    passages = [texts.tokens(texts.normalise(o[a:b])) or ["\0"] for o in outputs for a, b in cuts(o, 300)]
    entries = [line for line in event.candidate.split("\n") if line.lstrip().startswith("- ")]
    if not passages:
        return
    index = BM25Okapi(passages)
    for entry in entries:
        index.get_scores(texts.tokens(texts.normalise(entry)))


def timed(work: Callable[[], object], times: int) -> float:
    """Return the fastest of some calls in milliseconds of processor time, which pure code spends and another program cannot take."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best * 1000


def large(span: int, entries: int) -> Candidate:
    """Make a boundary with a span of `span` characters and `entries` entries out of recorded ones, none of it twice."""
    factory = Factory.load(fleet="core")
    history: list[Message] = []
    bullets: list[str] = []
    number = length = 0
    while length < span or len(bullets) < entries:
        sample = factory.run(number)[-1].event
        number += 1
        for message in (*sample.history, *sample.retained):
            if length >= span:
                break
            # A number in each line: repeated text would let every memo answer.
            text = "\n".join(f"{line} {number * 31 + i}" for i, line in enumerate(message.text.split("\n")))[: span - length]
            history.append(message.model_copy(update={"i": len(history), "text": text}))
            length += len(text)
        bullets += [f"{line} ({number})" for line in sample.candidate.split("\n") if line.startswith("- ")]
    half = entries // 2
    lines = ["## Decisions", *bullets[:half], "", "## Pending user asks", *bullets[half:entries]]
    summary = "\n".join(lines) + "\n"
    said = {"fleet": "core", "run": "large", "index": 1, "host": "openclaw", "task": "a task", "history": history, "candidate": summary}
    return Candidate.model_validate(said)


def measure(*, quick: bool) -> Iterator[Figure]:
    """Measure at the recorded size, at the large size, and the growth."""
    say("core: recorded boundaries")
    samples = [sample.event for run in Factory.load().runs(15 if quick else 45) for sample in run]
    for event in samples[:5]:
        boundary(event)
    own = [timed(partial(boundary, event), 3) for event in samples]
    plain = [timed(partial(library, event), 3) for event in samples]
    yield against("core, a recorded boundary (baseline: rank-bm25 retrieval alone)", median(own), "ms", median(plain), goal="value <= 6")
    say(f"core: a span of {LARGE_SPAN:,} characters")
    event = large(LARGE_SPAN, LARGE_ENTRIES)
    value = timed(lambda: boundary(event), 3)
    name = f"core, {LARGE_SPAN:,} characters, {LARGE_ENTRIES} entries (baseline: rank-bm25 retrieval alone)"
    yield against(name, value, "ms", timed(lambda: library(event), 1), goal="value <= 150")
    say("core: growth with the span, then with the entries")
    yield from _growth("span", "characters", [(n, large(n, LARGE_ENTRIES)) for n in (50_000, 100_000, 200_000, 400_000)])
    yield from _growth("entries", "entries", [(n, large(100_000, n)) for n in (25, 50, 100, 200)])


def _growth(what: str, unit: str, sizes: Sequence[tuple[int, Candidate]]) -> Iterator[Figure]:
    """Yield the time at each size beside that at the first; linear is a time that grows no faster than the size."""
    first, base = sizes[0][0], timed(lambda: boundary(sizes[0][1]), 5)
    for size, event in sizes[1:]:
        value = timed(partial(boundary, event), 3)
        factor = size // first
        # A tenth above the size itself: the clock's own noise.
        goal = f"ratio <= {factor * 1.1:.1f}"
        yield against(f"core, growth with {what}: {size:,} {unit} (baseline: {first:,})", value, "ms", base, goal=goal)
