"""What comes back in a history: an environment's output is a source again, a recovered plan never becomes its own evidence."""

import pytest

from tests.harness.pipeline import ScriptedJudge, Stages, candidate
from tests.integration.recovery.conftest import FLIGHT, SCORES, House, output, tool_result
from winnow.contracts.events import Message
from winnow.contracts.places import NOTICE
from winnow.contracts.vocabulary import Decision, MessageKind, Origin, ProvenanceClass, RootSource
from winnow.judging.local import LocalJudge

PLAN = "rebook reservation QX7PLM via Lisbon on Friday 14 March for $219"
CALL = Message(i=10, kind=MessageKind.ACTION, text="[tool call] expand: {}")


@pytest.fixture
async def judged(house) -> House:
    """The pipeline with the judge that ships."""
    return House(house.stage, Stages(house.stages.database, judge=LocalJudge()))


async def _entry(house: House, entry: str, *history: Message, run: str, index: int = 2):
    """The decision on one entry of a boundary with this history."""
    committed = await house.compact(f"## Decisions\n- {entry}\n", run=run, index=index, history=(CALL, *history), retained=())
    (decision,) = committed.decisions
    return decision


async def test_a_recovered_plan_is_no_evidence(judged):
    """A plan that was asked back supports nothing, through whatever tool it came; said by an environment the same words would."""
    await judged.compact(f"## Open TODOs\n- {PLAN}\n- ask about seat 14C at the desk on Sunday 16 March\n")
    (listed, _) = await judged.pruned()
    given = (await judged.ask(listed["handle"])).text
    assert given == f"- {PLAN}\n"
    told = f"decided: {PLAN}"  # other words than were asked back: only a source keeps it
    for number, tool in enumerate(("mcp__winnow__expand", "expand", None)):
        decision = await _entry(judged, told, tool_result(11, given.strip() if number else given, tool), run=f"again {number}")
        assert (decision.decision, decision.root_source) == (Decision.PRUNED, RootSource.NONE), tool
        assert decision.provenance is not ProvenanceClass.ENVIRONMENT
    control = await _entry(judged, told, output(11, given), run="control")
    assert (control.decision, control.root_source) == (Decision.KEPT, RootSource.ENVIRONMENT)


async def test_lists_are_no_evidence(judged):
    """What the other tools say of a plan supports nothing either, by their names or by the line that they begin with."""
    for number, (tool, head) in enumerate(
        (("winnow_pruned_entries", ""), ("something_else", f"{NOTICE}\n"), (None, f'{{"result": "{NOTICE}\\n'))
    ):
        decision = await _entry(judged, PLAN, tool_result(11, f"{head}abc.e2 [compaction 1]: - {PLAN}", tool), run=f"list {number}")
        assert decision.decision is Decision.PRUNED, tool


async def test_a_recovered_output_is_a_source_again(judged):
    """An output that was asked back byte for byte is the environment's word; what Winnow did not give is not, whatever tool says so."""
    fact = "flight HAT136 costs $152, seat 14C"
    fresh = await _entry(judged, fact, tool_result(11, FLIGHT), run="not given")
    assert fresh.decision is Decision.PRUNED
    await judged.compact()
    (hit,) = await judged.search("seat 14C", run="r")
    given = await judged.ask(hit["handle"])
    assert (given.text, given.headers["winnow-source"]) == (FLIGHT, "true")
    for number, text in enumerate((FLIGHT, f"\n{FLIGHT}  \n")):
        again = await _entry(judged, fact, tool_result(11, text), run=f"given {number}")
        assert (again.decision, again.root_source) == (Decision.KEPT, RootSource.ENVIRONMENT)
    changed = await _entry(judged, fact, tool_result(11, FLIGHT.replace("152", "199")), run="changed")
    assert changed.decision is Decision.PRUNED


async def test_no_chain_makes_a_plan_a_source(judged):
    """A plan that was recovered, stood in a history and is recovered from there is still no source."""
    await judged.compact(f"## Open TODOs\n- {PLAN}\n")
    given = (await judged.ask((await judged.pruned())[0]["handle"])).text
    committed = await judged.compact("## Done\n- looked\n", index=2, history=(CALL, tool_result(11, given, "expand")))
    from_history = await judged.ask(f"{committed.history_handle}.m11")
    assert (from_history.text, from_history.headers["winnow-source"]) == (given, "false")
    decision = await _entry(judged, f"decided: {PLAN}", tool_result(11, from_history.text, "expand"), run="again")
    assert decision.decision is Decision.PRUNED


async def test_an_upload_that_nobody_compacted_is_no_source(judged):
    """Messages that were only uploaded have no parts to ask back: whoever holds a key could write what he likes into them."""
    messages = {"history": [{"i": 1, "kind": "environment", "tool": "shell", "text": PLAN}]}
    claim = (await judged.stage.http.post("/v1/originals", json=messages)).json()
    assert (await judged.ask(f"{claim['handle']}.m1", run="r")).status_code == 404
    whole = await judged.ask(claim["handle"], run="r")
    assert (whole.status_code, whole.headers["winnow-source"]) == (200, "false")


@pytest.mark.parametrize("large", [False, True])
async def test_a_judge_that_reads_r_is_told_what_was_recovered(house, large):
    """R says of each output whether it is one, also where it is so large that the judge gets it as its host stored it."""
    await house.compact(f"## Open TODOs\n- {PLAN}\n", run="first")
    judge = ScriptedJudge(SCORES, remote=True)
    shown: list[tuple[Message, ...]] = []
    answers = judge.judge

    async def seen(request, deadline):
        shown.append(request.retained)
        return await answers(request, deadline)

    judge.judge = seen
    given = (await house.ask((await house.pruned("first"))[0]["handle"])).text
    retained = (CALL, tool_result(11, given, "expand"), output(12, "x" * 70_000 if large else "seat 14C"))
    await Stages(house.stages.database, judge=judge).one(
        candidate("## Done\n- looked\n", fleet=house.fleet, run="first", index=2, retained=retained)
    )
    assert [message.origin for message in shown[0][1:]] == [Origin.RECOVERY, Origin.OBSERVATION]
