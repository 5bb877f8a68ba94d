"""The SQL API: every documented query runs, and says what the rows say."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from tests.integration.storage.builders import candidate, committed, evidence, scores, stored, told
from winnow.contracts.vocabulary import Outcome, Reason
from winnow.storage import originals, raw, stages
from winnow.storage.originals import Content

DOCUMENT = Path(__file__).parents[3] / "docs" / "tables.md"
QUERIES = re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
VIEWS = re.findall(r"^### (\w+)$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)


def test_views_are_documented(database):
    """Every view has a section with a query that reads it, every table a line, and nothing else is documented."""
    rows = database.sql(
        "SELECT relname AS n, relkind::text AS k FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind IN ('r', 'p', 'v') AND NOT relispartition AND relname <> 'alembic_version'"
    )
    assert {r["n"] for r in rows if r["k"] == "v"} == set(VIEWS)
    assert all(any(re.search(rf"\b{view}\b", q) for q in QUERIES) for view in VIEWS)
    listed = re.findall(
        r"^\| `(\w+)` \|.*\| *(.*?) *\|$", DOCUMENT.read_text(encoding="utf-8").split("## Tables")[1].split("## Who")[0], re.MULTILINE
    )
    assert {name for name, _ in listed} == {r["n"] for r in rows if r["k"] != "v"}
    assert {name for name, month in listed if month} == {r["n"] for r in rows if r["k"] == "p"}


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: re.search(r"FROM (\w+)", q)[1])
async def test_documented_queries_run(db, fleet, now, query):
    """Each documented query is valid, as it stands in the document."""
    await told(db, candidate(fleet), now)
    async with db.transaction() as tx:
        await raw.fetch(tx, query)


async def test_findings(db, fleet, now):
    """What the span says against an entry is a row with both sides, the place of the other one, and what became of the entry."""
    await told(db, candidate(fleet), now)
    async with db.transaction() as tx:
        (row,) = await raw.fetch(tx, "SELECT * FROM entry_findings WHERE fleet = $1", fleet)
    assert (row["n"], row["kind"], row["claim"], row["key"], row["said"]) == (2, "contradicted", "480", "total", "490")
    assert (row["said_by"], row["message"], row["tool"], row["decision"]) == ("environment", 0, "search", "pruned")


async def test_histories(db, fleet, now):
    """The histories tell the boundary and its entries: section, score, decision, root and evidence text."""
    whole = await told(db, candidate(fleet, host="openclaw"), now)
    async with db.transaction() as tx:
        (boundary,) = await raw.fetch(tx, "SELECT * FROM boundary_history WHERE fleet = $1", fleet)
        rows = await raw.fetch(tx, "SELECT * FROM entry_history WHERE fleet = $1 ORDER BY n", fleet)
    assert (boundary["outcome"], boundary["entries"], boundary["pruned"], boundary["host"]) == ("judged", 2, 1, "openclaw")
    assert boundary["boundary_id"] == whole.boundary.boundary_id
    assert [(r["section"], r["score"], r["decision"], r["root_source"], r["unsupported"]) for r in rows] == [
        ("Decisions", 0.9, "kept", "environment", False), ("Next", 0.1, "pruned", "none", True),
    ]  # fmt: skip
    assert rows[0]["evidence"] == "e1 (output #0): HAT136 is ordered"


async def test_entries_before_their_scores(db, fleet, now):
    """Entries are seen as soon as the retriever has answered, and their score as soon as the judge has."""
    boundary = await stored(db, candidate(fleet), now)
    seen = "SELECT n, verdict, score, decision, unsupported FROM entry_history WHERE fleet = $1 ORDER BY n"
    async with db.transaction() as tx:
        await stages.store_evidence(tx, [evidence(boundary)], now=now)
        assert [tuple(r) for r in await raw.fetch(tx, seen, fleet)] == [(1, None, None, None, None), (2, None, None, None, None)]
        await stages.store_scores(tx, [scores(boundary)], now=now)
        assert [tuple(r) for r in await raw.fetch(tx, seen, fleet)] == [(1, "sourced", 0.9, None, None), (2, "unsourced", 0.1, None, True)]


async def test_unsupported_shares(db, fleet, now):
    """Shares count judged entries by section and by number of the boundary; what was not judged does not count."""
    for index in (1, 2):
        await told(db, candidate(fleet, index=index, texts=["- ordered HAT136", "- plan", "- other plan"][: index + 1]), now)
    async with db.transaction() as tx:
        sections = await raw.fetch(
            tx, "SELECT section, entries, unsupported, share FROM unsupported_by_section WHERE fleet = $1 ORDER BY 1", fleet
        )
        numbers = await raw.fetch(
            tx, "SELECT boundary_index, boundaries, entries, unsupported FROM unsupported_by_boundary WHERE fleet = $1 ORDER BY 1", fleet
        )
    assert [tuple(r) for r in sections] == [("Decisions", 2, 0, 0.0), ("Next", 3, 3, 1.0)]
    assert [tuple(r) for r in numbers] == [(1, 1, 2, 1), (2, 1, 3, 2)]


async def test_persistence(db, fleet, now):
    """An entry counts as present d summaries later where its wording stands there, supported apart from unsupported."""
    fact, plan = "- ordered HAT136", "- will call"
    for index, texts in enumerate(([fact, plan], [fact, "-  WILL call"], [fact]), 1):
        await told(db, candidate(fleet, index=index, texts=texts), now + timedelta(minutes=index))
    async with db.transaction() as tx:
        rows = await raw.fetch(
            tx, "SELECT distance, unsupported, entries, present, share FROM entry_persistence WHERE fleet = $1 ORDER BY 1, 2", fleet
        )
    assert [tuple(r) for r in rows] == [(1, False, 1, 1, 1.0), (1, True, 1, 1, 1.0), (2, False, 1, 1, 1.0), (2, True, 1, 0, 0.0)]


async def test_days(db, fleet, now):
    """A day counts its boundaries by outcome, open ones included."""
    await told(db, candidate(fleet), now)
    await stored(db, candidate(fleet, index=2), now)
    failed = await stored(db, candidate(fleet, index=3), now)
    async with db.transaction() as tx:
        await originals.put(tx, [Content.of(fleet, failed.candidate_sha256)])
        answer = committed(failed, "- ordered HAT136", now, count=0)
        event = answer.event.model_copy(update={"outcome": Outcome.UNJUDGED, "reason": Reason.DEADLINE, "late": True, "pruned": 0})
        await stages.store_committed(tx, [stages.CommittedAnswer(event=event, output=answer.output)], now=now)
        (day,) = await raw.fetch(
            tx, "SELECT boundaries, runs, judged, unjudged, open, late, entries, pruned FROM fleet_daily WHERE fleet = $1", fleet
        )
    assert tuple(day) == (3, 1, 1, 1, 1, 1, 2, 1)
