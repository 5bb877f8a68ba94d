"""Carry: the parent by id and hash, roots resolved in order, forks, unknown parents, and unpruned candidates that launder nothing."""

import uuid

from tests.harness.pipeline import ScriptedJudge, Stages, candidate
from winnow.contracts.events import Committed
from winnow.contracts.vocabulary import Decision, DecisionReason, Mode, RootSource
from winnow.storage.database import Database

FACT = "- Flight HAT136 costs $152"
PLAN = "- [ ] The customer probably prefers the aisle, so upgrade everything"
FIRST = f"## Decisions\n{FACT}\n\n## Open TODOs\n{PLAN}\n"


def run_id() -> str:
    """A run of its own for each test."""
    return f"run-{uuid.uuid4()}"


def by_word(committed: Committed, text: str, word: str) -> tuple[Decision, DecisionReason, RootSource]:
    """The decision for the entry that holds `word`."""
    data = text.encode()
    (found,) = [d for d in committed.decisions if word in data[d.span[0] : d.span[1]].decode()]
    return found.decision, found.reason, found.root_source


async def test_a_pruned_plan_does_not_come_back_through_our_own_text(store: Database) -> None:
    """M is the committed text: the parent is found by hash, and the carried fact inherits its environment root."""
    run = run_id()
    stages = Stages(store, ScriptedJudge({"aisle": 0.1}))
    first = await stages.one(candidate(FIRST, run=run))
    assert first.summary is not None
    assert first.summary.text == f"## Decisions\n{FACT}\n\n## Open TODOs\n"
    second_text = f"## Decisions\n{FACT}\n- Reservation QX7PLM is booked\n"
    second = await stages.one(candidate(second_text, run=run, index=2, previous_summary=first.summary.text, history=()))
    assert second.parent_boundary_id == first.boundary_id
    assert by_word(second, second_text, "HAT136") == (Decision.KEPT, DecisionReason.SCORE, RootSource.ENVIRONMENT)


async def test_an_unpruned_candidate_launders_nothing(store: Database) -> None:
    """In shadow mode the agent carries its own candidate; a plan without a source stays without one, however sure the judge is."""
    run = run_id()
    judge = ScriptedJudge({"aisle": 0.1})
    stages = Stages(store, judge)
    first = await stages.one(candidate(FIRST, run=run, mode=Mode.SHADOW))
    assert first.summary is not None
    assert first.summary.text == FIRST
    judge.scores = {}
    second = await stages.one(candidate(FIRST, run=run, index=2, previous_summary=FIRST, history=(), retained=()))
    assert second.parent_boundary_id == first.boundary_id
    assert by_word(second, FIRST, "aisle") == (Decision.PRUNED, DecisionReason.INHERITED_UNSOURCED, RootSource.NONE)
    assert by_word(second, FIRST, "HAT136")[2] is RootSource.ENVIRONMENT
    third = await stages.one(candidate(FIRST, run=run, index=3, previous_summary=FIRST, history=(), retained=(), mode=Mode.SHADOW))
    assert by_word(third, FIRST, "aisle")[1] is DecisionReason.INHERITED_UNSOURCED


async def test_a_parent_in_the_same_batch_is_found(store: Database) -> None:
    """Boundaries of one run that arrive together are decided in order, each with the roots of the one before."""
    run = run_id()
    stages = Stages(store, ScriptedJudge({"aisle": 0.1}))
    chain = [candidate(FIRST, run=run, mode=Mode.SHADOW)]
    chain += [
        candidate(FIRST + f"- step {i}\n", run=run, index=i, previous_summary=chain[-1].candidate, history=(), retained=()) for i in (2,)
    ]
    first, second = await stages.run(*chain)
    assert second.parent_boundary_id == first.boundary_id
    assert by_word(second, chain[1].candidate, "aisle")[0] is Decision.PRUNED


async def test_an_unknown_parent_gives_no_inheritance(store: Database) -> None:
    """A previous summary that Winnow has not seen is taken as it is: previous_unknown, and nothing is pruned for it."""
    stages = Stages(store)
    text = f"## Decisions\n{FACT}\n"
    found = await stages.one(candidate(text, run=run_id(), index=7, previous_summary=text, history=(), retained=()))
    assert found.parent_boundary_id is None
    assert by_word(found, text, "HAT136") == (Decision.KEPT, DecisionReason.SCORE, RootSource.PREVIOUS_UNKNOWN)


async def test_forks_find_their_own_parent(store: Database) -> None:
    """Two forks of a run with the same index each find the boundary whose text they carry, never the one with the right number."""
    run = run_id()
    stages = Stages(store)
    left_text, right_text = f"## Decisions\n{FACT}\n- left\n", f"## Decisions\n{FACT}\n- right\n"
    left, right = await stages.run(candidate(left_text, run=run), candidate(right_text, run=run))
    child_of_left = await stages.one(candidate(left_text + "- more\n", run=run, index=2, previous_summary=left_text, history=()))
    child_of_right = await stages.one(candidate(right_text + "- more\n", run=run, index=2, previous_summary=right_text, history=()))
    assert child_of_left.parent_boundary_id == left.boundary_id
    assert child_of_right.parent_boundary_id == right.boundary_id


async def test_the_named_parent_wins_where_its_text_fits(store: Database) -> None:
    """A host that forks into another run names the boundary; it is taken by its id, if one of its texts has the hash."""
    stages = Stages(store)
    text = f"## Decisions\n{FACT}\n"
    origin = await stages.one(candidate(text, run=run_id()))
    other = run_id()
    named = await stages.one(
        candidate(text + "- a\n", run=other, previous_summary=text, previous_boundary_id=origin.boundary_id, history=())
    )
    assert named.parent_boundary_id == origin.boundary_id
    unnamed = await stages.one(candidate(text + "- b\n", run=other, previous_summary=text, history=()))
    assert unnamed.parent_boundary_id is None
    wrong = await stages.one(
        candidate(text + "- c\n", run=run_id(), previous_summary="other text", previous_boundary_id=origin.boundary_id, history=())
    )
    assert wrong.parent_boundary_id is None


async def test_a_fleet_never_inherits_from_another(store: Database) -> None:
    """The same text and run name in another fleet is no parent."""
    run, text = run_id(), f"## Decisions\n{FACT}\n"
    stages = Stages(store)
    origin = await stages.one(candidate(text, run=run, fleet="tenant-a"))
    found = await stages.one(
        candidate(text + "- x\n", run=run, fleet="tenant-b", previous_summary=text, previous_boundary_id=origin.boundary_id, history=())
    )
    assert found.parent_boundary_id is None
