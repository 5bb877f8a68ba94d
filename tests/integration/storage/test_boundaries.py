"""Boundaries: the first insert wins, parents are found by text, pages are complete."""

import asyncio
import dataclasses
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from tests.integration.storage.builders import candidate, new_boundary, told
from winnow.contracts.events import sha256
from winnow.storage import boundaries, cursors, fleets, raw, runs
from winnow.storage.boundaries import Matched, ParentLookup, Status
from winnow.storage.database import Database


async def _insert(db: Database, *rows):
    async with db.transaction() as tx:
        return await boundaries.insert_new(tx, rows)


async def test_statuses(db, fleet, now):
    """A boundary is inserted once; the same request is the same boundary, another request under its id a conflict."""
    event = candidate(fleet)
    other = candidate(fleet, boundary_id=event.boundary_id, texts=["- something else"])
    first, again, conflict = await _insert(db, *(new_boundary(e, now) for e in (event, event, other)))
    assert (first.status, again.status, conflict.status) == (Status.INSERTED, Status.SAME, Status.CONFLICT)
    later = await _insert(db, new_boundary(other, now), new_boundary(event, now))
    assert [x.status for x in later] == [Status.CONFLICT, Status.SAME]
    assert {x.boundary.candidate_sha256 for x in later} == {sha256(event.candidate)}
    async with db.transaction() as tx:
        page = await runs.page(tx, fleet)
    assert [(r.run, r.boundaries) for r in page.runs] == [("run-1", 1)]


async def test_fields_come_back(db, fleet, now):
    """What a candidate says of its boundary is stored and read back."""
    event = candidate(
        fleet, previous_summary="- before", host="openclaw", compressor="some model", tokens_before=9, tokens_after=3,
        deadline=now + timedelta(seconds=5), user_turns_survive=False, previous_boundary_id=uuid.uuid4(),
    )  # fmt: skip
    (stored,) = await _insert(db, new_boundary(event, now))
    b = stored.boundary
    assert (b.run, b.agent, b.boundary_index, b.host, b.compressor, b.tokens_before, b.tokens_after) == (
        event.run, event.agent, 1, "openclaw", "some model", 9, 3,
    )  # fmt: skip
    assert (b.deadline, b.user_turns_survive, b.previous_boundary_id) == (event.deadline, False, event.previous_boundary_id)
    assert b.previous_sha256 == sha256("- before")
    assert b.task_sha256 == sha256(event.task)
    assert (b.outcome, b.evidence_at, b.scored_at, b.committed_at, b.held, b.late, b.warnings) == (None, None, None, None, False, False, ())


async def test_resubmission_across_the_end_of_a_month(db, fleet):
    """A resubmission in the next month finds the boundary of the last one, and its anchor time stays."""
    before, after = datetime(2026, 10, 31, 23, 59, 59, tzinfo=UTC), datetime(2026, 11, 1, 0, 0, 1, tzinfo=UTC)
    event = candidate(fleet)
    (first,) = await _insert(db, new_boundary(event, before))
    (again,) = await _insert(db, new_boundary(event, after))
    assert (first.status, again.status) == (Status.INSERTED, Status.SAME)
    assert again.boundary.boundary_at == before
    async with db.transaction() as tx:
        rows = await raw.fetch(tx, "SELECT count(*) AS n FROM boundaries WHERE fleet = $1", fleet)
    assert rows[0]["n"] == 1


@pytest.mark.parametrize(
    ("offset", "believed"),
    [(timedelta(days=-399), True), (timedelta(days=-401), False), (timedelta(days=1), True), (timedelta(days=3), False)],
)
async def test_absurd_clocks(db, fleet, now, offset, believed):
    """A host's clock is believed 400 days back and 2 days ahead; beyond that, the receive time is the anchor."""
    (stored,) = await _insert(db, new_boundary(candidate(fleet, boundary_at=now + offset), now))
    assert stored.boundary.boundary_at == (now + offset if believed else now)


async def test_concurrent_inserts_make_one_boundary(db, fleet, now):
    """Of several transactions with the same boundaries in any order, each boundary is inserted by one, and none fails."""
    rows = [new_boundary(candidate(fleet, index=i), now) for i in range(1, 9)]
    answers = await asyncio.gather(*(_insert(db, *(rows if k % 2 else rows[::-1])) for k in range(4)))
    inserted = [x.boundary.boundary_id for answer in answers for x in answer if x.status is Status.INSERTED]
    assert sorted(inserted) == sorted(r.boundary_id for r in rows)
    async with db.transaction() as tx:
        assert (await runs.page(tx, fleet)).runs[0].boundaries == len(rows)


async def test_hostile_names(db, fleet, now):
    """NUL and lone surrogates in names are stored as U+FFFD instead of failing the batch."""
    hostile = dataclasses.replace(new_boundary(candidate(fleet), now), run="a\x00b", agent="x\ud800y", host="'; DROP TABLE runs; --")
    (stored,) = await _insert(db, hostile)
    assert (stored.boundary.run, stored.boundary.agent, stored.boundary.host) == ("a\ufffdb", "x\ufffdy", "'; DROP TABLE runs; --")


async def test_a_fleet_must_exist(db, now):
    """A boundary of a fleet that was never created is refused by the database."""
    with pytest.raises(Exception, match="boundaries_fleets_fkey") as caught:
        await _insert(db, new_boundary(candidate("nobody"), now))
    from winnow.storage.database import data_error, transient

    assert data_error(caught.value)
    assert not transient(caught.value)


async def test_pages_are_complete(db, fleet, now):
    """Pages of boundaries and runs follow each other without a gap or a repetition, newest first."""
    rows = [
        new_boundary(candidate(fleet, run=f"run-{i % 3}", index=i, boundary_at=now - timedelta(minutes=i // 2)), now) for i in range(1, 12)
    ]
    await _insert(db, *rows)
    async with db.transaction() as tx:
        seen, cursor = [], None
        while True:
            page = await boundaries.page(tx, fleet, cursor=cursor, limit=3)
            seen.extend((b.boundary_at, b.boundary_id) for b in page.boundaries)
            cursor = page.next_cursor
            if cursor is None:
                break
        names, cursor = [], None
        while True:
            found = await runs.page(tx, fleet, cursor=cursor, limit=1)
            names.extend(r.run for r in found.runs)
            cursor = found.next_cursor
            if cursor is None:
                break
        of_run = await boundaries.page(tx, fleet, run="run-1", limit=100)
    assert seen == sorted(seen, reverse=True)
    assert {i for _, i in seen} == {r.boundary_id for r in rows}
    assert sorted(names) == ["run-0", "run-1", "run-2"]
    assert {b.run for b in of_run.boundaries} == {"run-1"}
    assert len(of_run.boundaries) == 4


@pytest.mark.parametrize(
    "cursor", ["", "AAAA", "not base64 \x00", "MjAyNi0xMS0zMFQwMDowMDowMA", cursors.encode(datetime(2026, 11, 30, tzinfo=UTC), "no uuid")]
)
async def test_bad_cursors(db, fleet, cursor):
    """A cursor that Winnow did not give out is refused and never reaches SQL."""
    async with db.transaction() as tx:
        with pytest.raises(cursors.BadCursor):
            await boundaries.page(tx, fleet, cursor=cursor)


def _asks(boundary, previous: str, **more) -> ParentLookup:
    given = {"fleet": boundary.fleet, "run": boundary.run, "boundary_id": uuid.uuid4(), "previous_boundary_id": None, **more}
    return ParentLookup(previous_sha256=sha256(previous), **given)


async def test_parents_by_text(db, fleet, now):
    """A parent is found by the hash of its committed or candidate text in the run; whoever asks is not his own parent."""
    first = await told(db, candidate(fleet), now)
    b = first.boundary
    lookups = [
        _asks(b, first.committed),
        _asks(b, first.candidate.candidate),
        _asks(b, "never seen"),
        _asks(b, first.committed, run="another run"),
        _asks(b, first.committed, fleet="another-fleet"),
        _asks(b, first.candidate.candidate, boundary_id=b.boundary_id),
    ]
    async with db.transaction() as tx:
        found = await boundaries.find_parents(tx, lookups)
    assert [(p.boundary.boundary_id, p.matched) if p else None for p in found] == [
        (b.boundary_id, Matched.COMMITTED), (b.boundary_id, Matched.CANDIDATE), None, None, None, None,
    ]  # fmt: skip


async def test_parents_by_id(db, fleet, now):
    """The boundary that the host names is the parent, in another run too, if the text is its own; else the text decides."""
    origin = await told(db, candidate(fleet, run="before the fork"), now)
    local = await told(db, candidate(fleet, run="after the fork", texts=["- ordered HAT136", "- other"]), now)
    assert origin.committed == local.committed
    fork = {"run": "after the fork"}
    async with db.transaction() as tx:
        named, lied, unnamed = await boundaries.find_parents(
            tx,
            [
                _asks(local.boundary, origin.committed, previous_boundary_id=origin.boundary.boundary_id, **fork),
                _asks(local.boundary, local.candidate.candidate, previous_boundary_id=origin.boundary.boundary_id, **fork),
                _asks(local.boundary, origin.committed, **fork),
            ],
        )
    assert named.boundary.boundary_id == origin.boundary.boundary_id
    assert (lied.boundary.boundary_id, lied.matched) == (local.boundary.boundary_id, Matched.CANDIDATE)
    assert unnamed.boundary.boundary_id == local.boundary.boundary_id


async def test_the_newest_text_before_the_asking_boundary_wins(db, fleet, now):
    """Where several boundaries of a run wrote the same text, the newest before the asking one is the parent, never its successor."""
    at = [now - timedelta(hours=h) for h in (4, 3, 1)]
    old, newer, successor = [
        await told(db, candidate(fleet, index=i, boundary_at=t, texts=["- the same", f"- other {i}"]), now) for i, t in enumerate(at, 1)
    ]
    asking = candidate(fleet, index=9, boundary_at=now - timedelta(hours=2), previous_summary="- the same")
    await _insert(db, new_boundary(asking, now))
    async with db.transaction() as tx:
        (found,) = await boundaries.find_parents(tx, [_asks(old.boundary, "- the same", boundary_id=asking.boundary_id)])
    assert found.boundary.boundary_id == newer.boundary.boundary_id
    assert successor.boundary.boundary_at > newer.boundary.boundary_at


async def test_empty_batches(db):
    """Empty batches ask the database nothing and answer nothing."""
    async with db.transaction() as tx:
        assert await boundaries.insert_new(tx, []) == []
        assert await boundaries.load(tx, []) == {}
        assert await boundaries.find_parents(tx, []) == []
        assert await fleets.load(tx, []) == {}
