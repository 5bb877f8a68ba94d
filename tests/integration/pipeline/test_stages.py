"""Each stage's promises: modes, holds, outcomes, stored answers, bound bytes."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text as sql

from tests.harness.pipeline import ScriptedJudge, Stages, candidate, output
from winnow.contracts import limits
from winnow.contracts.envelope import decode
from winnow.contracts.errors import TooLarge
from winnow.contracts.events import Candidate, ClaimCheck, Committed, Evidence, Messages, Scores, sha256
from winnow.contracts.topics import OBSERVATION
from winnow.contracts.vocabulary import Decision, DecisionReason, Mode, Outcome, Reason, Rules
from winnow.messaging.records import Received
from winnow.storage import boundaries, certificates, erase, fleets, originals, stuck
from winnow.storage.boundaries import NewBoundary
from winnow.storage.database import Database
from winnow.storage.fleets import Point
from winnow.storage.keys import Key
from winnow.storage.originals import Content, Kind, NewHandle

TEXT = "## Decisions\n- Flight HAT136 costs $152\n- Surely the aisle seat is preferred\n\n## Open TODOs\nNone.\n"
PRUNED = "## Decisions\n- Flight HAT136 costs $152\n\n## Open TODOs\nNone.\n"
AISLE = ScriptedJudge({"aisle": 0.1})


def fresh(prefix: str = "fleet") -> str:
    """A fleet of its own for each test."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


@pytest.mark.parametrize("asked", Mode)
@pytest.mark.parametrize("ceiling", Mode)
@pytest.mark.parametrize("held", [False, True])
async def test_the_effective_mode_is_the_mildest(store: Database, asked: Mode, ceiling: Mode, held: bool) -> None:
    """Of the event's mode, the fleet's, and annotate while the fleet is held, the mildest applies; only enforce prunes."""
    fleet, now = fresh(), datetime.now(UTC)
    async with store.transaction() as tx:
        await fleets.ensure(tx, [fleet], default=Point(mode=ceiling), now=now)
        if held:
            await fleets.hold(tx, fleet, by="test", because="drift", now=now)
    committed = await Stages(store, AISLE).one(candidate(TEXT, fleet=fleet, mode=asked))
    expected = min([asked, ceiling, *([Mode.ANNOTATE] if held else [])], key=lambda m: m.strength)
    assert committed.mode is expected
    assert committed.held is held
    assert committed.summary is not None
    assert committed.summary.text == (PRUNED if expected is Mode.ENFORCE else TEXT)
    assert [d.decision for d in committed.decisions] == [Decision.KEPT, Decision.PRUNED]


async def test_a_hold_counts_from_the_next_boundary_on(store: Database) -> None:
    """A hold that is committed between two boundaries of a run is obeyed by the second, though both were judged before it."""
    fleet = fresh()
    stages = Stages(store, AISLE)
    first = await stages.retrieve(candidate(TEXT, fleet=fleet), candidate(TEXT + "\n", fleet=fleet, index=2))
    scores = await stages.step(stages.judging, first.outgoing)
    one = await stages.step(stages.pruner, scores.outgoing[:1])
    async with store.transaction() as tx:
        await fleets.hold(tx, fleet, by="test", because="drift", now=datetime.now(UTC))
    two = await stages.step(stages.pruner, scores.outgoing[1:])
    modes = [decode(o.topic.event, o.body).mode for o in (*one.outgoing, *two.outgoing)]  # type: ignore[arg-type,union-attr,attr-defined]
    assert modes == [Mode.ENFORCE, Mode.ANNOTATE]


async def test_a_required_certificate_that_is_missing_holds(store: Database) -> None:
    """While `require_certificate` is set, a fleet without one is held at annotate."""
    fleet, now = fresh(), datetime.now(UTC)
    async with store.transaction() as tx:
        await fleets.ensure(tx, [fleet], default=Point(mode=Mode.ENFORCE, require_certificate=True), now=now)
    committed = await Stages(store, AISLE).one(candidate(TEXT, fleet=fleet))
    assert (committed.mode, committed.held) == (Mode.ANNOTATE, True)


async def test_a_certificate_covers_the_boundaries_that_it_names(store: Database) -> None:
    """A boundary of another compressor, or judged by another version than the certificate names, is held and says why; others are not."""
    fleet, now = fresh(), datetime.now(UTC)
    async with store.transaction() as tx:
        point = Point(mode=Mode.ENFORCE, judge=AISLE.id.name, require_certificate=True)
        current = (await fleets.ensure(tx, [fleet], default=point, now=now))[fleet].operating_point
        certificate = certificates.Certificate(
            certificate_id=uuid.uuid4(), fleet=fleet, compressor="gpt 5", judge=AISLE.id.name, judge_version=AISLE.id.version, tau=0.5,
            grader="g", data_sha256="0" * 64, method="exact", alpha=0.1, delta=0.05, n=100, losses=1.0, denominator="all", bound=0.05,
            record={"certificate": {"operating_point": str(current.id)}}, issued_at=now, expires_at=now + timedelta(days=1),
        )  # fmt: skip
        await certificates.issue(tx, certificate, by="test")
    said = {}
    newer = ScriptedJudge({"aisle": 0.1})
    newer.id = newer.id.model_copy(update={"version": "2"})
    for name, judge, compressor in (
        ("covered", AISLE, "gpt:5"), ("other", AISLE, "gpt:6"), ("unsaid", AISLE, None), ("newer", newer, "gpt:5"),
    ):  # fmt: skip
        committed = await Stages(store, judge).one(candidate(TEXT, fleet=fleet, run=name, compressor=compressor))
        said[name] = (committed.mode, committed.held_because)
    why = "no valid certificate for this"
    assert said == {
        "covered": (Mode.ENFORCE, None), "other": (Mode.ANNOTATE, f"{why} compressor"), "unsaid": (Mode.ANNOTATE, f"{why} compressor"),
        "newer": (Mode.ANNOTATE, f"{why} judge version"),
    }  # fmt: skip


async def test_a_stale_monitor_holds_where_the_fleet_says_so(store: Database) -> None:
    """While `hold_if_monitor_stale` is set, the fleet is held unless a heartbeat is fresh."""
    now = datetime.now(UTC)
    first, second = fresh(), fresh()
    async with store.transaction() as tx:
        await fleets.ensure(tx, [first, second], default=Point(hold_if_monitor_stale=True), now=now)
        await fleets.heartbeat(tx, "test-monitor", now=now - timedelta(hours=1))
    assert (await Stages(store, AISLE).one(candidate(TEXT, fleet=first))).held
    async with store.transaction() as tx:
        await fleets.heartbeat(tx, "test-monitor", now=now)
    assert not (await Stages(store, AISLE).one(candidate(TEXT, fleet=second))).held


async def test_the_operating_point_is_stamped_by_the_retriever(store: Database) -> None:
    """A threshold that is changed after retrieval does not touch a boundary that is under way."""
    fleet, now = fresh(), datetime.now(UTC)
    stages = Stages(store, ScriptedJudge(default=0.6))
    first = await stages.retrieve(candidate(TEXT, fleet=fleet))
    async with store.transaction() as tx:
        await fleets.set_point(tx, fleet, Point(tau=0.9), by="test", because="stricter", now=now)
    scores = await stages.step(stages.judging, first.outgoing)
    last = await stages.step(stages.pruner, scores.outgoing)
    committed = decode(last.outgoing[0].topic.event, last.outgoing[0].body)  # type: ignore[arg-type]
    assert committed.tau == 0.5  # type: ignore[attr-defined]
    assert (await stages.one(candidate(TEXT + "\n", fleet=fleet, index=2))).tau == 0.9


async def test_what_an_event_says_of_the_operating_point_decides_nothing(store: Database) -> None:
    """Evidence and scores that name another fleet's operating point, or none that exists, are judged and pruned under the stamped one."""
    fleet, other, now = fresh(), fresh(), datetime.now(UTC)
    named, unnamed = ScriptedJudge({"aisle": 0.1}), ScriptedJudge(default=0.0)
    named.id = named.id.model_copy(update={"name": "named"})
    stages = Stages(store, unnamed)
    stages.with_judges({"local": unnamed, "named": named})
    async with store.transaction() as tx:
        await fleets.ensure(tx, [fleet], default=Point(judge="named"), now=now)
        foreign = (await fleets.ensure(tx, [other], default=Point(mode=Mode.SHADOW, tau=0.0), now=now))[other].operating_point.id
    first = await stages.retrieve(candidate(TEXT, fleet=fleet))
    evidence = decode(Evidence, first.outgoing[0].body)
    forged = evidence.model_copy(update={"operating_point": foreign})
    batch = [stages.received("evidence", Evidence, forged.key, forged.model_dump_json().encode())]
    scores = decode(Scores, (await stages.judging.handle(batch)).outgoing[0].body)
    lost = scores.model_copy(update={"operating_point": 2**40})
    batch = [stages.received("scores", Scores, lost.key, lost.model_dump_json().encode())]
    committed = decode(Committed, (await stages.pruner.handle(batch)).outgoing[0].body)
    assert (named.asked, unnamed.asked) == (1, 0)
    assert (committed.mode, committed.tau, committed.operating_point) == (Mode.ENFORCE, 0.5, evidence.operating_point)


async def test_a_redelivery_publishes_the_stored_result_and_asks_nobody(store: Database) -> None:
    """Every stage answers a repetition with the same bytes and ids, and the judge is asked once."""
    judge = ScriptedJudge({"aisle": 0.1})
    stages = Stages(store, judge)
    boundary = candidate(TEXT, fleet=fresh())
    first, again = await stages.retrieve(boundary), await stages.retrieve(boundary)
    scores, scores_again = await stages.step(stages.judging, first.outgoing), await stages.step(stages.judging, again.outgoing)
    last, last_again = await stages.step(stages.pruner, scores.outgoing), await stages.step(stages.pruner, scores_again.outgoing)
    for one, other in ((first, again), (scores, scores_again), (last, last_again)):
        assert [(o.body, o.event_id, o.time) for o in one.outgoing] == [(o.body, o.event_id, o.time) for o in other.outgoing]
    assert judge.asked == 1
    assert not stages.dead


async def test_another_judge_never_overwrites_a_stored_answer(store: Database) -> None:
    """The first stored answer wins, also where a worker with another judge has worked at the same time."""
    stages = Stages(store, ScriptedJudge({"aisle": 0.1}))
    other = Stages(store, ScriptedJudge(default=0.0))
    evidence = await stages.retrieve(candidate(TEXT, fleet=fresh()))
    first = await stages.step(stages.judging, evidence.outgoing)
    second = await other.step(other.judging, evidence.outgoing)
    assert first.outgoing[0].body == second.outgoing[0].body


async def test_the_same_id_with_other_content_is_rejected(store: Database) -> None:
    """A conflicting resubmission is a dead letter and a rejection of its own; the first boundary stands."""
    stages = Stages(store, AISLE)
    fleet, boundary_id = fresh(), uuid.uuid4()
    first = await stages.one(candidate(TEXT, fleet=fleet, boundary_id=boundary_id))
    conflict = await stages.one(candidate(TEXT + "- other\n", fleet=fleet, boundary_id=boundary_id))
    assert (conflict.outcome, conflict.reason) == (Outcome.REJECTED, Reason.ID_CONFLICT)
    assert conflict.request_sha256 != first.request_sha256
    assert [d.reason for d in stages.dead] == [Reason.ID_CONFLICT]
    assert (await stages.one(candidate(TEXT, fleet=fleet, boundary_id=boundary_id))) == first


async def test_a_conflict_within_one_batch_is_seen(store: Database) -> None:
    """Two contents under one id in one batch: the first is judged, the second rejected."""
    stages = Stages(store, AISLE)
    fleet, boundary_id = fresh(), uuid.uuid4()
    found = await stages.run(
        candidate(TEXT, fleet=fleet, boundary_id=boundary_id), candidate(TEXT + "- other\n", fleet=fleet, boundary_id=boundary_id)
    )
    assert sorted(c.outcome for c in found) == [Outcome.JUDGED, Outcome.REJECTED]


async def test_a_resubmission_in_another_month_is_no_second_boundary(store: Database) -> None:
    """The first insert fixes the month: the same boundary sent again after its end finds the stored result."""
    stages = Stages(store, AISLE)
    fleet = fresh()
    month_end = datetime(2026, 10, 31, 23, 59, tzinfo=UTC)
    boundary = candidate(TEXT, fleet=fleet, boundary_at=month_end)
    first = await stages.one(boundary)
    again = await stages.one(boundary.model_copy(update={"boundary_at": month_end + timedelta(days=2)}))
    assert again == first
    async with store.transaction() as tx:
        page = await boundaries.page(tx, fleet)
    assert len(page.boundaries) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", Reason.EMPTY),
        ("Error generating summary: 429", Reason.ERROR_TEXT),
        ("<tool_call>\n<function=bash>ls</function>\n</tool_call>", Reason.TOOL_CALL),
    ],
)
async def test_what_is_no_summary_is_committed_as_it_is(store: Database, text: str, reason: Reason) -> None:
    """Error texts and tool calls are named and left alone."""
    committed = await Stages(store, ScriptedJudge(default=0.0)).one(candidate(text, fleet=fresh()))
    assert (committed.outcome, committed.reason) == (Outcome.NOT_A_SUMMARY, reason)
    assert committed.summary is not None
    assert committed.summary.text == text


async def test_a_summary_without_entries_is_judged_with_a_reason(store: Database) -> None:
    """Nothing to judge: no judge call, and the summary stands."""
    judge = ScriptedJudge()
    committed = await Stages(store, judge).one(candidate("## Decisions\nNone.\n", fleet=fresh()))
    assert (committed.outcome, committed.reason, judge.asked) == (Outcome.JUDGED, Reason.NO_ENTRIES, 0)


async def test_an_entry_without_an_answer_is_kept(store: Database) -> None:
    """A partial answer keeps what it does not score, and says so."""
    committed = await Stages(store, ScriptedJudge({"aisle": None, "HAT136": 0.1})).one(candidate(TEXT, fleet=fresh()))
    assert (committed.outcome, committed.reason) == (Outcome.JUDGED_PARTIAL, Reason.UNSCORED_ENTRIES)
    assert [(d.decision, d.reason) for d in committed.decisions] == [
        (Decision.PRUNED, DecisionReason.SCORE), (Decision.KEPT, DecisionReason.UNSCORED),
    ]  # fmt: skip


async def test_a_dead_judge_costs_no_entry(store: Database) -> None:
    """Where no judge answers, the outcome is unjudged with a reason, and the candidate is committed as it was written."""
    judge = ScriptedJudge()
    judge.fails = True
    committed = await Stages(store, judge).one(candidate(TEXT, fleet=fresh()))
    assert (committed.outcome, committed.reason) == (Outcome.UNJUDGED, Reason.JUDGE_FAILED)
    assert committed.summary is not None
    assert committed.summary.text == TEXT


async def test_an_expired_boundary_never_reaches_a_remote_judge(store: Database) -> None:
    """After the deadline a remote judge is not asked; the local score is stored and the boundary is unjudged: deadline, and late."""
    remote, local = ScriptedJudge(remote=True), ScriptedJudge({"aisle": 0.2})
    remote.id = remote.id.model_copy(update={"name": "remote"})
    stages = Stages(store, local)
    stages.with_judges({"local": local, "remote": remote})
    fleet, now = fresh(), datetime.now(UTC)
    async with store.transaction() as tx:
        await fleets.ensure(tx, [fleet], default=Point(judge="remote"), now=now)
    committed = await stages.one(candidate(TEXT, fleet=fleet, deadline=now - timedelta(seconds=1)))
    assert (committed.outcome, committed.reason, committed.late) == (Outcome.UNJUDGED, Reason.DEADLINE, True)
    assert remote.asked == 0
    assert [d.score for d in committed.decisions] == [0.9, 0.2]
    assert committed.fallback_for == "remote"
    again = await stages.one(candidate(TEXT + "\n", fleet=fleet, index=2, deadline=now + timedelta(hours=1)))
    assert (again.outcome, remote.asked, again.judge) == (Outcome.JUDGED, 1, remote.id)


async def test_pins_hold_under_winnow_rules_and_not_under_published(store: Database) -> None:
    """A host pin keeps its entry under `winnow`; `published` knows no pins."""
    fleet = fresh()
    stages = Stages(store, AISLE)
    pinned = await stages.one(candidate(TEXT, fleet=fleet, pins=("aisle",)))
    assert [d.reason for d in pinned.decisions] == [DecisionReason.SCORE, DecisionReason.PINNED]
    published = await stages.one(candidate(TEXT, fleet=fleet, index=2, pins=("aisle",), rules=Rules.PUBLISHED))
    assert published.decisions[1].decision is Decision.PRUNED
    assert published.rules is Rules.PUBLISHED


async def test_published_rules_have_a_tau_of_their_own(store: Database) -> None:
    """`published` keeps from .5 on, whatever the fleet's threshold is."""
    fleet = fresh()
    async with store.transaction() as tx:
        await fleets.ensure(tx, [fleet], default=Point(tau=0.95), now=datetime.now(UTC))
    stages = Stages(store, ScriptedJudge({"aisle": 0.5}))
    strict = await stages.one(candidate(TEXT, fleet=fleet))
    published = await stages.one(candidate(TEXT, fleet=fleet, index=2, rules=Rules.PUBLISHED))
    assert [(c.tau, c.pruned) for c in (strict, published)] == [(0.95, 2), (0.5, 0)]


async def test_messages_come_by_claim_check(store: Database) -> None:
    """H and R as a stored original are judged as if they had come inline, and are one request with the inline form."""
    fleet = fresh()
    stages = Stages(store, AISLE)
    inline = candidate(TEXT, fleet=fleet)
    content = inline.inline_messages().content()
    handle = originals.new_handle()
    async with store.transaction() as tx:
        await fleets.ensure(tx, [fleet], default=Point(), now=datetime.now(UTC))
        await originals.put(tx, [Content.of(fleet, content)])
        await originals.put_handles(tx, [NewHandle(handle=handle, fleet=fleet, sha256=sha256(content), kind=Kind.HISTORY)])
    claim = ClaimCheck(fleet=fleet, handle=handle, sha256=sha256(content), size=len(content))
    claimed = inline.model_copy(update={"history": (), "retained": (), "messages": claim})
    assert (await stages.one(claimed)) == (await stages.one(inline))


@pytest.mark.parametrize("wrong", ["handle", "hash", "fleet"])
async def test_a_claim_check_that_names_nothing_is_a_dead_letter(store: Database, wrong: str) -> None:
    """A lost, foreign or wrong claim check costs the one record, says which it was, and its runtime is told at once."""
    fleet, owner = fresh(), fresh()
    stages = Stages(store, AISLE)
    handle, content = originals.new_handle(), b'{"history":[],"retained":[]}'
    async with store.transaction() as tx:
        await fleets.ensure(tx, [fleet, owner], default=Point(), now=datetime.now(UTC))
        await originals.put(tx, [Content.of(owner if wrong == "fleet" else fleet, content)])
        stored = NewHandle(handle=handle, fleet=owner if wrong == "fleet" else fleet, sha256=sha256(content), kind=Kind.HISTORY)
        await originals.put_handles(tx, [stored])
    claim = ClaimCheck(
        fleet=fleet,
        handle=originals.new_handle() if wrong == "handle" else handle,
        sha256="0" * 64 if wrong == "hash" else sha256(content),
        size=len(content),
    )
    reason = Reason.HASH_MISMATCH if wrong == "hash" else Reason.CLAIM_LOST
    told = await stages.one(candidate(TEXT, fleet=fleet, history=(), retained=(), messages=claim))
    assert (told.outcome, told.reason, told.summary) == (Outcome.REJECTED, reason, None)
    assert [d.reason for d in stages.dead] == [reason]
    async with store.transaction() as tx:
        assert not await boundaries.load(tx, [Key(fleet, told.boundary_id)])


async def upload(store: Database, fleet: str, content: bytes) -> ClaimCheck:
    """Store an original as the gateway does, and give its claim check."""
    handle = originals.new_handle()
    async with store.transaction() as tx:
        await fleets.ensure(tx, [fleet], default=Point(), now=datetime.now(UTC))
        await originals.put(tx, [Content.of(fleet, content)])
        await originals.put_handles(tx, [NewHandle(handle=handle, fleet=fleet, sha256=sha256(content), kind=Kind.HISTORY)])
    return ClaimCheck(fleet=fleet, handle=handle, sha256=sha256(content), size=len(content))


async def submitted(store: Database, asked: Candidate) -> None:
    """Store a boundary before the retriever has seen it, as the gateway does."""
    assert asked.messages is not None
    now, history = datetime.now(UTC), asked.messages.sha256
    row = NewBoundary.of(asked, received_at=now, history_sha256=history, request_sha256=asked.request_sha256())
    async with store.transaction() as tx:
        await boundaries.insert_new(tx, [row])


@pytest.mark.parametrize(
    ("content", "text", "reason"),
    [
        (b"no messages", TEXT, Reason.INVALID),
        (b"{}", "## Decisions\n" + "".join(f"- item {i}\n" for i in range(6)), Reason.TOO_LARGE),
    ],
)
async def test_what_the_gateway_took_and_nobody_can_judge_comes_to_its_end(
    store: Database, monkeypatch: pytest.MonkeyPatch, content: bytes, text: str, reason: Reason
) -> None:
    """A boundary that came over HTTP and cannot be judged is stored as rejected, said so again word for word, and never swept."""
    monkeypatch.setattr(limits, "MAX_ENTRIES", 5)
    fleet = fresh()
    stages = Stages(store, AISLE)
    asked = candidate(text, fleet=fleet, history=(), retained=(), messages=await upload(store, fleet, content))
    await submitted(store, asked)
    first, again = await stages.retrieve(asked), await stages.retrieve(asked)
    assert [(o.body, o.event_id, o.time) for o in first.outgoing] == [(o.body, o.event_id, o.time) for o in again.outgoing]
    told = decode(Committed, first.outgoing[0].body)
    assert (told.outcome, told.reason, told.request_sha256) == (Outcome.REJECTED, reason, asked.request_sha256())
    later = datetime.now(UTC) + timedelta(days=1)
    async with store.transaction() as tx:
        found = (await boundaries.load(tx, [Key(fleet, asked.boundary_id)]))[Key(fleet, asked.boundary_id)]
        waiting = await stuck.find(tx, older_than=timedelta(seconds=1), now=later)
    assert (found.outcome, found.reason, found.tau, found.operating_point) == (Outcome.REJECTED, reason, None, None)
    assert found.committed_at is not None
    assert found.boundary_id not in {s.boundary.boundary_id for s in waiting}
    assert [d.reason for d in stages.dead] == [reason, reason]


async def test_large_claims_are_opened_some_at_a_time(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many claim checks a batch has, few are in memory at once; all are answered in order, also who lies about its size."""
    fleet = fresh()
    stages = Stages(store, AISLE)
    claims = [await upload(store, fleet, Messages(history=(output(n, f"seat {n}C"),)).content()) for n in range(5)]
    claims[3] = claims[3].model_copy(update={"size": 0})
    monkeypatch.setattr("services.retriever.handlers.CLAIMED_BYTES", 2 * claims[0].size)
    opened: list[int] = []
    original_open = stages.retriever._open

    async def opening(batch: Sequence[Received[Candidate]]) -> tuple[list[Any], list[Any]]:
        opened.append(len(batch))
        return await original_open(batch)

    monkeypatch.setattr(stages.retriever, "_open", opening)
    asked = [candidate(TEXT, fleet=fleet, index=n, history=(), retained=(), messages=claim) for n, claim in enumerate(claims, 1)]
    handled = await stages.retrieve(*asked)
    assert opened == [2, 3]
    assert [decode(Evidence, o.body).index for o in handled.outgoing if o.topic.event is Evidence] == [1, 2, 3, 5]
    assert [d.reason for d in handled.dead] == [Reason.HASH_MISMATCH]


async def test_evidence_that_nothing_can_hold_ends_as_rejected(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evidence above what an original may have costs its own boundary, which is told so; a neighbour in the batch is answered."""
    fleet = fresh()
    stages = Stages(store, AISLE)
    asked = candidate(TEXT, fleet=fleet)

    def full(*_: object, **__: object) -> None:
        raise TooLarge

    monkeypatch.setattr("services.retriever.handlers.output_of", full)
    with pytest.raises(TooLarge):
        await stages.retrieve(asked, candidate(TEXT, fleet=fleet, index=2))
    (rejected,) = (await stages.retrieve(asked)).outgoing
    told = decode(Committed, rejected.body)
    assert (told.outcome, told.reason) == (Outcome.REJECTED, Reason.TOO_LARGE)
    assert [d.reason for d in stages.dead] == [Reason.TOO_LARGE]


async def test_a_redelivery_whose_claim_has_expired_publishes_the_stored_answer(store: Database) -> None:
    """Once retrieved, a boundary needs its upload no more: its candidate again is no dead letter."""
    fleet = fresh()
    stages = Stages(store, AISLE)
    inline = candidate(TEXT, fleet=fleet)
    claim = await upload(store, fleet, inline.inline_messages().content())
    asked = inline.model_copy(update={"history": (), "retained": (), "messages": claim})
    first = await stages.retrieve(asked)
    async with store.transaction() as tx:
        await tx.execute(sql("UPDATE handles SET expires_at = now() - interval '1 day' WHERE handle = :handle"), {"handle": claim.handle})
    again = await stages.retrieve(asked)
    assert [o.body for o in again.outgoing] == [o.body for o in first.outgoing]
    assert not stages.dead


async def test_evidence_above_the_limit_travels_as_a_claim_check(store: Database) -> None:
    """An evidence event larger than its topic takes is stored as an original, and its record carries a claim check with its hash."""
    stages = Stages(store, AISLE)
    history = tuple(output(i, "\n".join(f"row {i}-{j} value{i * 1000 + j} " + "lorem ipsum " * 20 for j in range(40))) for i in range(120))
    text = "## Decisions\n" + "".join(f"- row {i}-{j} has value{i * 1000 + j}\n" for i in range(120) for j in (3, 13, 23, 33))
    handled = await stages.retrieve(candidate(text, fleet=fresh(), history=history))
    (outgoing,) = handled.outgoing
    assert outgoing.claim
    claim = ClaimCheck.model_validate_json(outgoing.body)
    async with store.transaction() as tx:
        original = await originals.resolve(tx, claim.fleet, claim.handle, now=datetime.now(UTC))
    assert sha256(original.data) == claim.sha256
    assert len(decode(Evidence, original.data).entries) == 480


async def test_a_later_event_of_an_unknown_boundary_is_a_dead_letter(store: Database) -> None:
    """Evidence or scores of a boundary that was never stored are named and do not stop their neighbours."""
    stages = Stages(store, AISLE)
    known = await stages.retrieve(candidate(TEXT, fleet=fresh()))
    event = decode(Evidence, known.outgoing[0].body)
    stranger = event.model_copy(update={"boundary_id": uuid.uuid4()})
    batch = [stages.received("evidence", Evidence, event.key, e.model_dump_json().encode()) for e in (stranger, event)]
    handled = await stages.judging.handle(batch)
    assert [d.reason for d in handled.dead] == [Reason.UNKNOWN_BOUNDARY]
    assert len(handled.outgoing) == 1


async def test_of_an_erased_run_no_dead_letter_is_kept(store: Database) -> None:
    """Evidence and scores that are still on the bus after an erasure are dropped; those of another run are answered."""
    stages = Stages(store, AISLE)
    fleet = fresh()
    gone, stays = candidate(TEXT, fleet=fleet, run="gone"), candidate(TEXT, fleet=fleet, run="stays")
    evidence = (await stages.retrieve(gone, stays)).outgoing
    scores = (await stages.step(stages.judging, evidence)).outgoing
    async with store.transaction() as tx:
        await erase.erase_run(tx, fleet, "gone", by="test", now=datetime.now(UTC))
    for handler, records in ((stages.judging, evidence), (stages.pruner, scores)):
        handled = await stages.step(handler, records)
        assert handled.dead == []
        assert {o.key for o in handled.outgoing if o.topic is not OBSERVATION} == {f"{fleet}/stays"}


async def test_nul_and_odd_texts_go_through(store: Database) -> None:
    """NUL, right-to-left text, emoji and control characters neither stop the store nor change a byte of what is kept."""
    text = "## Decisions\n- Flight HAT136 \x00 costs $152 \u202e\u0645\u0631\u062d\u0628\u0627 🛫\n- aisle \x1b[31m guess\n"
    stages = Stages(store, AISLE)
    committed = await stages.one(candidate(text, fleet=fresh(), task="nul \x00 task"))
    assert committed.summary is not None
    assert committed.summary.text == text[: text.index("- aisle")]
    async with store.transaction() as tx:
        found = await boundaries.load(tx, [Key(committed.fleet, committed.boundary_id)])
        handle = committed.candidate_handle
        assert handle is not None
        assert (await originals.resolve(tx, committed.fleet, handle, now=datetime.now(UTC))).data == text.encode()
    assert len(found) == 1
