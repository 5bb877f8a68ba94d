"""Stages: the first stored answer wins, with its exact bytes, under the anchor's time."""

# ruff: noqa: S608  the names of tables and views are this module's own

import asyncio
from datetime import UTC, datetime

import pytest

from tests.harness.waiting import eventually
from tests.integration.storage.builders import candidate, committed, evidence, scores, stored, told
from winnow.contracts.vocabulary import Decision, FindingKind, Outcome, RootSource
from winnow.storage import boundaries, entries, raw, stages
from winnow.storage.database import COMMITTED_CHANNEL
from winnow.storage.keys import Stage

CHILDREN = ("entries", "evidence_passages", "entry_evidence", "scores", "decisions", "stage_outputs")


async def test_a_boundary_goes_through(db, fleet, now):
    """Each stage stores its answer with its boundary, and everything is read back as it was said."""
    whole = await told(db, candidate(fleet), now)
    b = whole.boundary
    assert (b.outcome, b.pruned, b.entries, b.tau, b.judge, b.profile) == (Outcome.JUDGED, 1, 2, 0.5, "local", "openclaw")
    assert None not in (b.evidence_at, b.scored_at, b.committed_at)
    asked = evidence(b)
    async with db.transaction() as tx:
        loaded = (await entries.load(tx, [b.key]))[b.key]
        history = await entries.history(tx, b.key)
        carried = (await entries.decisions_of(tx, [b.key]))[b.key]
        outputs = {s: (await stages.load_outputs(tx, [b.key], s))[b.key] for s in Stage}
    assert loaded == asked.event.entries
    assert [h.entry for h in history] == list(loaded)
    assert history[0].passages == asked.event.passages
    assert (history[0].score.score, history[0].judge.name) == (0.9, "local")
    assert [h.score.flags for h in history] == [(), (FindingKind.CONTRADICTED,)]
    assert history[1].decision.decision is Decision.PRUNED
    assert [(c.n, c.decision, c.root_source) for c in carried] == [
        (1, Decision.KEPT, RootSource.ENVIRONMENT), (2, Decision.PRUNED, RootSource.NONE),
    ]  # fmt: skip
    assert outputs[Stage.EVIDENCE].output == asked.output
    assert outputs[Stage.SCORES].output == scores(b).output
    assert outputs[Stage.COMMITTED].output == committed(b, whole.committed, now).output


async def test_the_first_answer_wins(db, fleet, now):
    """A second, different answer stores nothing: what was stored first is published again, byte for byte."""
    boundary = await stored(db, candidate(fleet), now)
    async with db.transaction() as tx:
        assert await stages.store_evidence(tx, [evidence(boundary)], now=now) == {boundary.key}
        assert await stages.store_evidence(tx, [evidence(boundary, texts=["- another"])], now=now) == set()
        assert await stages.store_scores(tx, [scores(boundary)], now=now) == {boundary.key}
        assert await stages.store_scores(tx, [scores(boundary, explanation="another")], now=now) == set()
        assert await stages.store_committed(tx, [committed(boundary, "- ordered HAT136", now)], now=now) == {boundary.key}
        assert await stages.store_committed(tx, [committed(boundary, "another", now)], now=now) == set()
        outputs = {s: (await stages.load_outputs(tx, [boundary.key], s))[boundary.key].output for s in Stage}
        assert [e.text for e in (await entries.load(tx, [boundary.key]))[boundary.key]] == ["- ordered HAT136", "- will call tomorrow"]
    assert outputs[Stage.EVIDENCE] == evidence(boundary).output
    assert outputs[Stage.SCORES] == scores(boundary).output
    assert outputs[Stage.COMMITTED] == committed(boundary, "- ordered HAT136", now).output


async def test_two_workers_store_one_answer(db, fleet, now):
    """Two transactions with the same boundaries, in opposite order and at the same time, store each answer once and do not deadlock."""
    batch = [await stored(db, candidate(fleet, index=i), now) for i in range(1, 7)]

    async def work(order, text: str) -> set:
        async with db.transaction() as tx:
            return await stages.store_evidence(tx, [evidence(b, texts=[text]) for b in order], now=now)

    one, two = await asyncio.gather(work(batch, "- one"), work(batch[::-1], "- two"))
    assert one.isdisjoint(two)
    assert one | two == {b.key for b in batch}
    async with db.transaction() as tx:
        loaded = await entries.load(tx, [b.key for b in batch])
        outputs = await stages.load_outputs(tx, [b.key for b in batch], Stage.EVIDENCE)
    for b in batch:
        (entry,) = loaded[b.key]
        assert entry.text == ("- one" if b.key in one else "- two")
        assert entry.text.encode() in outputs[b.key].output.body


async def test_a_rolled_back_answer_leaves_nothing(db, fleet, now):
    """An answer whose transaction fails leaves no row, and can be stored afterwards."""
    boundary = await stored(db, candidate(fleet), now)
    with pytest.raises(RuntimeError, match="crash"):  # noqa: PT012  the failing transaction is the test
        async with db.transaction() as tx:
            await stages.store_evidence(tx, [evidence(boundary)], now=now)
            raise RuntimeError("crash")
    async with db.transaction() as tx:
        for child in CHILDREN:
            assert (await raw.fetch(tx, f"SELECT count(*) AS n FROM {child} WHERE fleet = $1", fleet))[0]["n"] == 0
        assert await stages.store_evidence(tx, [evidence(boundary)], now=now) == {boundary.key}


async def test_unknown_boundaries_store_nothing(db, fleet, now):
    """An answer for a boundary that was never stored is left out, and its neighbour is stored."""
    known, unknown = await stored(db, candidate(fleet), now), await stored(db, candidate(fleet, index=2), now)
    async with db.transaction() as tx:
        await raw.execute(tx, "DELETE FROM boundaries WHERE boundary_id = $1", unknown.boundary_id)
        assert await stages.store_evidence(tx, [evidence(unknown), evidence(known)], now=now) == {known.key}
        rows = await raw.fetch(tx, "SELECT DISTINCT boundary_id FROM entries WHERE fleet = $1", fleet)
    assert [r["boundary_id"] for r in rows] == [known.boundary_id]


async def test_children_take_the_anchors_time(db, fleet, now):
    """All children carry the boundary's own time and lie in that month's partitions, whenever their stage runs."""
    at = datetime(2026, 3, 31, 23, 59, tzinfo=UTC)
    whole = await told(db, candidate(fleet, boundary_at=at), now)
    assert whole.boundary.boundary_at == at
    async with db.transaction() as tx:
        for child in CHILDREN:
            rows = await raw.fetch(tx, f"SELECT DISTINCT tableoid::regclass::text AS t, boundary_at FROM {child} WHERE fleet = $1", fleet)
            assert [(r["t"], r["boundary_at"]) for r in rows] == [(f"{child}_2026_03", at)]


async def test_hostile_texts(db, fleet, now):
    """NUL, quotes, array and JSON syntax, 1 MB lines and astral characters are stored; text has U+FFFD where NUL was, bytes are exact."""
    hostile = ['- a\x00b {"x":"\\u0000"} \\u0000', "- {},\"'\\ ${1} %s NULL", "- \U0001f4a9" + "x" * 1_000_000]
    boundary = await stored(db, candidate(fleet), now)
    answer = evidence(boundary, texts=hostile, warnings=("{", '"\x00"', "a,b", "\\", "NULL", ""))
    async with db.transaction() as tx:
        assert await stages.store_evidence(tx, [answer], now=now) == {boundary.key}
        loaded = (await entries.load(tx, [boundary.key]))[boundary.key]
        output = (await stages.load_outputs(tx, [boundary.key], Stage.EVIDENCE))[boundary.key].output
        warnings = (await boundaries.load(tx, [boundary.key]))[boundary.key].warnings
    assert [e.text for e in loaded] == [t.replace("\x00", "\ufffd") for t in hostile]
    assert output == answer.output
    assert warnings == ("{", '"\ufffd"', "a,b", "\\", "NULL", "")


async def test_committing_notifies(db, fleet, now):
    """Committing a boundary says its token to whoever listens, when the transaction is committed and not before; a token names nobody."""
    boundary = await stored(db, candidate(fleet), now)
    heard: list[str] = []
    ready = asyncio.Event()
    task = asyncio.create_task(db.listen(COMMITTED_CHANNEL, heard.append, connected=ready.set))
    try:
        await asyncio.wait_for(ready.wait(), 10)
        with pytest.raises(RuntimeError):  # noqa: PT012  the failing transaction is the test
            async with db.transaction() as tx:
                await stages.store_committed(tx, [committed(boundary, "- never", now)], now=now)
                raise RuntimeError
        async with db.transaction() as tx:
            await stages.store_committed(tx, [committed(boundary, "- ordered HAT136", now)], now=now)
        await eventually(lambda: bool(heard), 10)
    finally:
        task.cancel()
    assert heard == [boundary.key.token]
    assert fleet not in heard[0]
    assert str(boundary.boundary_id) not in heard[0]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("- Ordered  HAT136", "* ordered hat136", True),
        ("1. ordered", "12) Ordered", True),
        ("- [ ] call", "- [x] call", False),
        ("- ordered HAT136", "- ordered HAT137", False),
    ],
)
def test_wording(one, other, same):
    """The identity of a wording ignores bullet, case and spacing, and nothing else: a check box is part of the claim."""
    assert (stages.text_key(one) == stages.text_key(other)) is same
