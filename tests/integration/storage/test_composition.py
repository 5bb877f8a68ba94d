"""What summaries consist of, in SQL and in the report's own count."""

from datetime import timedelta

import pytest

from tests.integration.storage.builders import candidate, committed, evidence, scores, stored
from winnow.contracts.events import EntryDecision
from winnow.contracts.vocabulary import Mode, RootSource, SectionClass
from winnow.judging.evaluation.composition import compose
from winnow.storage import composition, raw, stages
from winnow.storage.composition import JudgeVersion, Wanted
from winnow.storage.stages import CommittedAnswer, EvidenceAnswer, ScoresAnswer, text_key

SECTIONS = {
    "Decisions": SectionClass.MIXED,
    "Open TODOs": SectionClass.FORWARD,
    "Pending user asks": SectionClass.FORWARD,
    "Exact identifiers": SectionClass.OBSERVATION,
}
JUDGE = JudgeVersion(judge="local", version="1", boundaries=0)


async def summary(db, fleet, now, entries, *, run="run-1", index=1, mode=Mode.SHADOW, judge_version="1"):
    """A boundary whose candidate has these entries: section, text, score, root source."""
    texts = [text for _, text, _, _ in entries]
    boundary = await stored(db, candidate(fleet, run=run, index=index, texts=texts), now + timedelta(minutes=index))
    found = evidence(boundary, texts=texts)
    placed = tuple(
        entry.model_copy(update={"section": section, "section_class": SECTIONS[section]})
        for entry, (section, _, _, _) in zip(found.event.entries, entries, strict=True)
    )
    scored = scores(boundary, count=len(entries))
    said = tuple(
        one.model_copy(update={"p": score, "score": score}) for one, (_, _, score, _) in zip(scored.event.scores, entries, strict=True)
    )
    judge = scored.event.judge.model_copy(update={"version": judge_version})
    decided = committed(boundary, "\n".join(texts), now, count=len(entries))
    decisions = tuple(
        EntryDecision.model_validate(
            one.model_dump()
            | {
                "root_source": root,
                "decision": "pruned" if score is not None and score < 0.5 else "kept",
                "section": section,
                "score": score,
            }
        )
        for one, (section, _, score, root) in zip(decided.event.decisions, entries, strict=True)
    )
    event = decided.event.model_copy(update={"mode": mode, "decisions": decisions, "judge": judge})
    async with db.transaction() as tx:
        await stages.store_evidence(
            tx, [EvidenceAnswer(event=found.event.model_copy(update={"entries": placed}), output=found.output)], now=now
        )
        scores_event = scored.event.model_copy(update={"scores": said, "judge": judge})
        await stages.store_scores(tx, [ScoresAnswer(event=scores_event, output=scored.output)], now=now)
        await stages.store_committed(tx, [CommittedAnswer(event=event, output=decided.output)], now=now)
    return boundary


PLAN = ("Open TODOs", "- call the airline", 0.2, RootSource.NONE)
FACT = ("Exact identifiers", "- HAT136 costs $152", 0.9, RootSource.ENVIRONMENT)
CHOICE = ("Decisions", "- go with the cheapest", 0.4, RootSource.NONE)
ASK = ("Pending user asks", "- a refund", 0.3, RootSource.NONE)


@pytest.fixture
async def history(db, fleet, now):
    """Three watched summaries of one run, one enforced run of two."""
    laundered = (*PLAN[:2], 0.8, RootSource.NONE)
    await summary(db, fleet, now, [CHOICE, PLAN, ASK, FACT], index=1)
    await summary(db, fleet, now, [("Decisions", "- go with the CHEAPEST", 0.7, RootSource.NONE), laundered, FACT], index=2)
    await summary(db, fleet, now, [("Decisions", "- something new", None, RootSource.PREVIOUS_UNKNOWN), laundered, FACT], index=3)
    await summary(db, fleet, now, [PLAN, FACT], run="run-2", index=1, mode=Mode.ENFORCE)
    await summary(db, fleet, now, [FACT], run="run-2", index=2, mode=Mode.ENFORCE)
    return fleet


async def rows_of(db, fleet, judge=JUDGE):
    async with db.transaction() as tx:
        runs = await composition.runs(tx, Wanted(fleets=[fleet]))
        return [row async for block in composition.entries(tx, runs, judge) for row in block]


async def ask(db, query, *arguments):
    async with db.transaction() as tx:
        return [dict(row) for row in await raw.fetch(tx, query, *arguments)]


async def test_sections(db, history):
    """By section the view counts what the report counts, by score and by root source, watched runs apart from enforced ones."""
    found = compose(await rows_of(db, history), len)
    rows = await ask(db, "SELECT * FROM composition_by_section WHERE fleet = $1", history)
    assert {row["enforced"] for row in rows} == {False, True}
    for row in rows:
        both = found[row["enforced"]].sections[f"section={row['section']}"]
        assert (row["entries"], row["unsupported"], row["unrooted"]) == (both.score.n, both.score.of, both.root.of)
        assert (row["share"], row["unrooted_share"]) == (pytest.approx(both.score.value), pytest.approx(both.root.value))
    decisions = next(row for row in rows if row["section"] == "Decisions")
    assert (decisions["entries"], decisions["unsupported"], decisions["unrooted"], decisions["reasoning"]) == (2, 1, 2, True)
    assert not next(row for row in rows if row["section"] == "Pending user asks")["reasoning"]


async def test_boundaries(db, history):
    """By boundary too: first, second and later, all entries and reasoning entries, and their mean number a summary."""
    found = compose(await rows_of(db, history), len)
    rows = await ask(db, "SELECT * FROM composition_by_boundary WHERE fleet = $1", history)
    assert {(row["enforced"], row["boundary"]) for row in rows} == {(False, "1"), (False, "2"), (False, "later"), (True, "1"), (True, "2")}
    for row in rows:
        number, everything, reasoning = found[row["enforced"]].stages[row["boundary"]]
        assert (row["summaries"], row["entries"], row["unsupported"]) == (number.n, everything.score.n, everything.score.of)
        assert (row["reasoning"], row["reasoning_unsupported"]) == (reasoning.score.n, reasoning.score.of)
        assert row["reasoning_unsupported_mean"] == pytest.approx(reasoning.score.of / number.n)
        assert row["reasoning_unrooted_share"] == (None if reasoning.root.n == 0 else pytest.approx(reasoning.root.value))


async def test_persistence(db, history):
    """Where no entry is reworded the view follows entries as the report does: by wording, from summary to summary."""
    found = compose(await rows_of(db, history), len)
    rows = await ask(
        db,
        "SELECT enforced, basis, unsupported, distance, sum(entries)::int AS entries, sum(present)::int AS present,"
        " sum(entries) FILTER (WHERE reasoning)::int AS reasoning FROM composition_persistence WHERE fleet = $1 GROUP BY 1, 2, 3, 4",
        history,
    )
    made = {(r["enforced"], r["basis"], r["unsupported"], r["distance"]): (r["entries"], r["present"]) for r in rows}
    counted = {
        (enforced, basis, unsupported, distance): (share.n, share.of)
        for enforced, regime in found.items()
        for (name, basis, unsupported, distance), share in regime.persistence.items()
        if name == "all"
    }
    assert made == counted
    assert made[False, "score", True, 1] == (3, 2)  # the plan and the choice stay, the ask goes
    assert made[False, "score", True, 2] == (3, 1)


async def test_kept(db, history):
    """By section, first and later boundaries, the view says what was kept and how many bytes were cut."""
    rows = await ask(db, "SELECT * FROM composition_kept WHERE fleet = $1 AND NOT enforced", history)
    found = compose(await rows_of(db, history), len)[False]
    assert {(f"section={r['section']}", r["later"]): (r["entries"], r["kept"]) for r in rows} == {
        key: (share.n, share.of) for key, share in found.kept.items() if key[0] != "all"
    }
    assert sum(r["bytes_cut"] for r in rows) == 9 * found.pruned.of


async def test_judges_stand_side_by_side(db, fleet, now):
    """The judge with the most boundaries comes first; boundaries that one did not score are counted, not guessed."""
    await summary(db, fleet, now, [PLAN], index=1)
    await summary(db, fleet, now, [PLAN], index=2, judge_version="2")
    await summary(db, fleet, now, [PLAN], index=3, judge_version="2")
    async with db.transaction() as tx:
        runs = await composition.runs(tx, Wanted(fleets=[fleet]))
        judges = await composition.judges(tx, runs)
        assert [(one.version, one.boundaries) for one in judges] == [("2", 2), ("1", 1)]
        assert await composition.unscored(tx, runs, judges[0]) == 1
        assert [len(block) async for block in composition.entries(tx, runs, judges[0])] == [2]


async def test_a_period_takes_whole_runs(db, fleet, now):
    """A run with a boundary in the period is counted whole; other runs, fleets and rules are not."""
    await summary(db, fleet, now, [PLAN], index=1)
    await summary(db, fleet, now, [PLAN], index=2)
    async with db.transaction() as tx:
        for wanted, found in (
            (Wanted(fleets=[fleet], since=now + timedelta(seconds=90)), [(fleet, "run-1")]),
            (Wanted(fleets=[fleet], since=now + timedelta(seconds=200)), []),
            (Wanted(fleets=[fleet], until=now), []),
            (Wanted(fleets=[fleet], runs=["other"]), []),
            (Wanted(fleets=[fleet], rules="published"), []),
            (Wanted(fleets=["nobody"]), []),
        ):
            assert await composition.runs(tx, wanted) == found


def test_wordings_are_the_stored_ones():
    """Two entries have one wording for the report exactly where they have one `text_key` in the database."""
    from winnow.judging.evaluation.carrying import same_key

    texts = ["- Call  Ann", "* call ann", "call ann", "1. call ann", "- [ ] call ann", "- call bob", "\u2022 Call ANN", "-call ann", ""]
    for a in texts:
        for b in texts:
            assert (same_key(a) == same_key(b)) == (text_key(a) == text_key(b)), (a, b)
