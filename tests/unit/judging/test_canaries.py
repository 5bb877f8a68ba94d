"""Entries with known answers: their answers are certain, and they change nothing of the others."""

import random
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness import shared_data
from winnow.cli.boundary_lines import BoundaryLine, parse_line
from winnow.compaction import text as texts
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import CanaryKind, MessageKind, Rules
from winnow.judging import local
from winnow.judging.canaries import Donor, Draw, Ground, draw, plant
from winnow.judging.offline import request_of
from winnow.judging.stress import holds, telling

ALWAYS = Draw(planted=True, counts=True, seed=7)


def ground(candidate: str, *, run: str = "run", rules: Rules = Rules.WINNOW, **more):
    given_ = {"task": "", "previous": None, "history": (), "retained": (), **more}
    examined, request = request_of(candidate, rules=rules, **given_)
    return Ground(run=run, rules=rules, examined=examined, **given_), request


def of_line(line: BoundaryLine):
    return ground(
        line.candidate,
        run=line.run or line.id,
        task=line.task,
        previous=line.previous_summary,
        history=line.history,
        retained=line.retained,
    )


@pytest.fixture(scope="module")
def lines():
    with shared_data("sourcebench", "dev.jsonl").open("rb") as file:
        return [parse_line(line) for line in file]


@pytest.fixture(scope="module")
def planted(lines):
    """Every boundary of the development set with its canaries, and what the local judge says of them."""
    made = []
    donors = []
    grounds = [of_line(line) for line in lines]
    for place, request in grounds:
        supported = [s.n for s in local.score(request.evidence) if (s.p or 0) >= 0.9]
        donors += [Donor(run=place.run, section=e.section, text=e.text) for e in request.evidence.entries if e.n in supported][:4]
    for number, (place, request) in enumerate(grounds):
        rng = random.Random(number)
        canaries = plant(place, rng.sample(donors, 40), ALWAYS, rng)
        made.append((place, request, canaries))
    return made


def said(place: Ground, *, kinds=tuple(MessageKind)) -> str:
    return "\n".join(m.text for m in (*place.history, *place.retained) if m.kind in kinds)


def test_answers_are_certain(planted):
    """Of a donor's values none occurs in anything that was said; the others stand word for word in an output or in M."""
    kinds = dict.fromkeys(CanaryKind, 0)
    for place, _, canaries in planted:
        everything = texts.normalise("\n".join((place.task, place.previous or "", said(place)))).lower()
        for canary in canaries:
            kinds[canary.kind] += 1
            bare = texts.strip_marker(canary.entry.text).strip()
            match canary.kind:
                case CanaryKind.DONOR:
                    assert len(telling(bare)) >= 2
                    assert not any(holds(everything, value) for value in telling(bare))
                case CanaryKind.OUTPUT:
                    assert bare in said(place, kinds=(MessageKind.ENVIRONMENT,))
                case CanaryKind.PREVIOUS:
                    assert bare in (place.previous or "")
    assert kinds[CanaryKind.DONOR] >= 30
    assert kinds[CanaryKind.OUTPUT] + kinds[CanaryKind.PREVIOUS] >= 35
    assert min(kinds.values()) >= 5


def test_they_stand_behind_the_real_ones(planted):
    """At most two, of different answers, numbered on; their evidence is the pool's own or numbered on from it."""
    for _, request, canaries in planted:
        entries, pool = request.evidence.entries, request.evidence.passages
        assert [c.entry.n for c in canaries] == list(range(len(entries) + 1, len(entries) + len(canaries) + 1))
        assert len({c.kind.supported for c in canaries}) == len(canaries) <= 2
        more = [p.id for c in canaries for p in c.passages]
        assert more == list(range(len(pool) + 1, len(pool) + len(more) + 1))
        known = {p.id for p in pool} | set(more)
        assert {link.passage for c in canaries for link in c.entry.evidence} <= known


def test_they_change_no_real_score_of_the_local_judge(planted):
    """Asked with canaries, the local judge says of every real entry what it says without."""
    for _, request, canaries in planted:
        evidence = request.evidence
        more = evidence.model_copy(
            update={
                "entries": (*evidence.entries, *(c.entry for c in canaries)),
                "passages": (*evidence.passages, *(p for c in canaries for p in c.passages)),
            }
        )
        assert local.score(more)[: len(evidence.entries)] == local.score(evidence)


def test_the_local_judge_tells_them_apart(planted):
    """A judge that works keeps what has a source and drops what has none, most of the time; the figures are printed."""
    kept = {kind: [] for kind in CanaryKind}
    for _, request, canaries in planted:
        scores = {s.n: s for s in local.score(request.evidence.model_copy(update={"entries": tuple(c.entry for c in canaries)}))}
        for canary in canaries:
            kept[canary.kind].append((scores[canary.entry.n].p or 0.0) >= 0.5)
    shares = {kind.value: (round(sum(of) / len(of), 3), len(of)) for kind, of in kept.items()}
    print(f"\nkept by the local judge, share and number: {shares}")  # noqa: T201  measured figures are for a person
    assert shares["donor"][0] <= 0.3
    assert shares["output"][0] >= 0.7
    assert shares["previous"][0] >= 0.9


def test_planting_repeats_itself(lines):
    """The same seed gives the same canaries."""
    place, _ = of_line(lines[3])
    donors = [Donor(run="other", section="Decisions", text=f"- Order ZX{n}81Q costs $7{n}1.25") for n in range(9)]
    first, second = (plant(place, donors, ALWAYS, random.Random(5)) for _ in range(2))
    assert first == second
    assert {c.kind for c in first} >= {CanaryKind.DONOR}


def test_where_none_is_planted():
    """Not under published rules, not where chance does not pick, not where nothing is certain, not of the same run."""
    donor = Donor(run="other", section="Decisions", text="- Order ZX81Q costs $71.25")
    text = "## Decisions\n- one\n- two\n"
    plain, _ = ground(text)
    published, _ = ground(text, rules=Rules.PUBLISHED)
    empty, _ = ground("")
    rng = random.Random(1)
    assert [c.kind for c in plant(plain, [donor], ALWAYS, rng)] == [CanaryKind.DONOR]
    assert plant(plain, [], ALWAYS, rng) == ()
    assert plant(plain, [Donor(run="run", section="Decisions", text=donor.text)], ALWAYS, rng) == ()
    assert plant(plain, [Donor(run="other", section="Decisions", text="- no value at all")], ALWAYS, rng) == ()
    assert plant(published, [donor], ALWAYS, rng) == ()
    assert plant(empty, [donor], ALWAYS, rng) == ()
    assert plant(plain, [donor], Draw(planted=False, counts=True, seed=1), rng) == ()


def test_the_draw_follows_the_share():
    """Shares and coins come out as asked, the same every time, and the coin does not lean on the draw."""
    ids = [uuid.UUID(int=n) for n in range(4000)]
    drawn = [draw("fleet", i, 0.2) for i in ids]
    assert drawn == [draw("fleet", i, 0.2) for i in ids]
    picked = [d for d in drawn if d.planted]
    assert 0.17 < len(picked) / len(ids) < 0.23
    assert 0.44 < sum(d.counts for d in picked) / len(picked) < 0.56
    assert not any(draw("fleet", i, 0.0).planted for i in ids)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200), st.integers())
def test_any_text_is_planted_whole_or_not_at_all(donor, output, previous, seed):
    """Whatever texts say, each canary is one entry with the text that it was made of."""
    history = (Message(i=0, kind=MessageKind.ENVIRONMENT, text=output),)
    place, request = ground("## Decisions\n- one\n", history=history, previous=previous)
    canaries = plant(place, [Donor(run="other", section=donor[:40], text=donor)], ALWAYS, random.Random(seed))
    for at, canary in enumerate(canaries, len(request.evidence.entries) + 1):
        assert canary.entry.n == at
        assert texts.strip_marker(canary.entry.text).strip() in donor + output + previous
