"""What the span says against entries, through all stages with the local judge."""

import uuid
from datetime import UTC, datetime

import pytest

from tests.harness.pipeline import Stages, candidate, output
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import Decision, DecisionReason, FindingKind, MessageKind, Verdict
from winnow.judging.local import LocalJudge
from winnow.storage import fleets, raw
from winnow.storage.database import Database
from winnow.storage.fleets import Point

TEXT = "## Decisions\n- Flight HAT136 costs $157\n\n## Open TODOs\n- [ ] Run `pytest -q tests/unit`\n"
SPAN = (
    Message(i=0, kind=MessageKind.ACTION, text="[tool call] shell: pytest -q tests/unit"),
    output(1, "12 passed in 0.3s for flight HAT136, which costs $152"),
)


@pytest.mark.parametrize("prune_stale", [False, True])
async def test_wrong_values_go_and_done_work_goes_where_the_fleet_says_so(store: Database, prune_stale: bool) -> None:
    """A value that nobody says costs an entry its place; open work that was done goes only with `prune_stale`; both are in the view."""
    fleet, now = f"fleet-{uuid.uuid4().hex[:8]}", datetime.now(UTC)
    async with store.transaction() as tx:
        await fleets.ensure(tx, [fleet], default=Point(prune_stale=prune_stale), now=now)
    committed = await Stages(store, LocalJudge()).one(candidate(TEXT, fleet=fleet, history=SPAN))
    wrong, done = committed.decisions
    assert (wrong.decision, wrong.verdict, wrong.flags) == (Decision.PRUNED, Verdict.CONTRADICTED, (FindingKind.CONTRADICTED,))
    assert "157" in wrong.explanation
    assert "152" in wrong.explanation
    assert FindingKind.STALE in done.flags
    assert (done.reason is DecisionReason.STALE) is prune_stale
    async with store.transaction() as tx:
        rows = await raw.fetch(tx, "SELECT n, kind, said_by, message FROM entry_findings WHERE fleet = $1 ORDER BY n", fleet)
    assert [tuple(row) for row in rows] == [(1, "contradicted", "environment", 1), (2, "stale", "environment", 1)]
