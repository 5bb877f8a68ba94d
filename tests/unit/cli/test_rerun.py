"""Comparing what two pipelines made of the same boundaries, and the order in which they are run again."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.cli.differences import Change, Difference, Summary, compare, left_out
from winnow.cli.rerunning import Changes, Folder, OtherRerun, environment, plan_of, waves
from winnow.contracts.errors import Permanent
from winnow.contracts.vocabulary import Mode
from winnow.storage.fleets import Point
from winnow.storage.keys import Key
from winnow.storage.rejudging import Where
from winnow.storage.reruns import End, EntryEnd, Item


def entry(n: int, text: str, decision: str = "kept", score: float | None = 0.9) -> EntryEnd:
    return EntryEnd(
        n=n, text_key=text, section_class="facts", decision=decision, reason="score", score=score, verdict="sourced", root_source="none"
    )


def end(*entries: EntryEnd, sha: str = "a", outcome: str = "judged") -> End:
    return End(outcome=outcome, reason=None, mode="enforce", judge="local", judge_version="1", committed_sha256=sha, entries=entries)


def test_the_same_end_is_the_same():
    """No change, whatever the boundary; scores may differ in the last places."""
    was = end(entry(1, "x"), entry(2, "y", "pruned", 0.1))
    now = end(entry(1, "x", score=0.9 + 1e-12), entry(2, "y", "pruned", 0.1))
    one = compare("f", "r", "b", was, now)
    assert one.same
    assert one.changes == ()


def test_what_changes_is_told_entry_by_entry():
    """Decisions, scores, entries that are new or gone; equal texts are told apart by their occurrence."""
    was = end(entry(1, "same"), entry(2, "x", "kept", 0.6), entry(3, "x", "pruned", 0.2), entry(4, "gone"))
    now = end(entry(1, "same"), entry(2, "x", "pruned", 0.4), entry(3, "x", "pruned", 0.3), entry(4, "new"), sha="b")
    one = compare("f", "r", "b", was, now)
    assert [(c.n, c.was, c.now) for c in one.changes] == [
        (2, "kept", "pruned"),
        (3, "pruned", "pruned"),
        (4, "kept", None),
        (4, None, "kept"),
    ]
    assert not one.same
    summary = Summary.of([one])
    assert dict(summary.decisions) == {("kept", "pruned"): 1, ("kept", "absent"): 1, ("absent", "kept"): 1}
    assert (summary.rescored, round(summary.largest_shift, 6)) == (1, 0.2)


@pytest.mark.parametrize("change", [{"outcome": "unjudged"}, {"sha": "b"}])
def test_an_outcome_or_bytes_alone_make_a_difference(change):
    """Equal decisions are not enough."""
    assert not compare("f", "r", "b", end(entry(1, "x")), end(entry(1, "x"), **change)).same


def test_a_boundary_that_was_left_out_is_neither_the_same_nor_different():
    """It is counted by its reason."""
    summary = Summary.of([left_out("f", "r", "b", "its originals are gone"), compare("f", "r", "c", end(), end())])
    assert summary.value["left_out"] == {"its originals are gone": 1}
    assert (summary.value["same"], summary.value["differ"]) == (1, 0)


changes = st.builds(
    Change, n=st.integers(1, 9), section_class=st.sampled_from(["facts", "plan"]), was=st.sampled_from(["kept", "pruned", None]),
    now=st.sampled_from(["kept", "pruned", None]), was_reason=st.none(), now_reason=st.none(),
    was_score=st.none() | st.floats(0, 1), now_score=st.none() | st.floats(0, 1),
)  # fmt: skip
differences = st.builds(
    Difference, fleet=st.text(max_size=9), run=st.text(max_size=9), boundary_id=st.uuids().map(str), was=st.sampled_from(["judged", "x"]),
    now=st.sampled_from(["judged", "x"]), was_judge=st.just("local 1"), now_judge=st.sampled_from(["local 1", "jev 2"]),
    same_bytes=st.booleans(), entries=st.integers(0, 50), changes=st.lists(changes, max_size=4).map(tuple),
    left_out=st.none() | st.just("gone"),
)  # fmt: skip


@given(st.lists(differences, max_size=20))
def test_a_comparison_survives_its_file_and_sums_add_up(found):
    """JSON and back is the identity; every boundary is the same, different or left out."""
    assert [Difference.read(json.loads(json.dumps(one.value))) for one in found] == found
    value = Summary.of(found).value
    assert value["same"] + value["differ"] + sum(value["left_out"].values()) == value["boundaries"] == len(found)


items = st.lists(
    st.builds(
        Item, key=st.builds(Key, fleet=st.sampled_from("ab"), boundary_id=st.uuids()), run=st.sampled_from("rstu"),
        operating_point=st.integers(1, 2),
    ),
    max_size=40,
)  # fmt: skip


@given(items, st.integers(1, 5))
def test_waves_keep_the_order_and_have_one_boundary_of_a_run(found, most):
    """Nothing is lost or moved; within a wave there is one fleet, one operating point and no run twice."""
    cut = list(waves(found, most))
    assert [item for wave in cut for item in wave] == found
    for wave in cut:
        assert 1 <= len(wave) <= most
        assert len({(item.key.fleet, item.operating_point) for item in wave}) == 1
        assert len({item.run for item in wave}) == len(wave)


def test_the_other_pipeline_knows_nothing_of_this_one(tmp_path):
    """No database, broker, webhook or prefix of ours; the judges are given; a broker of one's own gets a prefix of the rerun's."""
    own = {
        "PATH": "/bin", "WINNOW_DATABASE_URL": "postgresql://prod", "WINNOW_KAFKA_BOOTSTRAP_SERVERS": "p:9092", "WINNOW_TOPIC_PREFIX": "",
        "WINNOW_WEBHOOK_URL": "https://ops", "WINNOW_JUDGES": "{}", "WINNOW_JUDGES__JEV__API_KEY": "k", "WINNOW_STATE_DIR": "/ours",
        "WINNOW_KAFKA_SASL_PASSWORD": "p", "WINNOW_OTLP_ENDPOINT": "http://c",
    }  # fmt: skip
    alone = environment(own, tmp_path, database=None, kafka=None, prefix="rerun-1.")
    assert alone["WINNOW_STATE_DIR"] == str(tmp_path)
    assert alone["WINNOW_JUDGES__JEV__API_KEY"] == "k"
    assert not [
        name for name in alone if name.startswith(("WINNOW_DATABASE", "WINNOW_KAFKA", "WINNOW_WEBHOOK", "WINNOW_TOPIC", "WINNOW_OTLP"))
    ]
    shared = environment(own, tmp_path, database="postgresql://copy", kafka="prod:9092", prefix="rerun-1.")
    assert (shared["WINNOW_DATABASE_URL"], shared["WINNOW_TOPIC_PREFIX"]) == ("postgresql://copy", "rerun-1.")
    assert shared["WINNOW_KAFKA_SASL_PASSWORD"] == "p"
    assert "WINNOW_WEBHOOK_URL" not in shared


def test_the_copy_demands_nothing_and_changes_what_is_asked():
    """Certificates and live monitors are not asked of a copy; judge and threshold are the point's unless changed."""
    point = Point(mode=Mode.SHADOW, tau=0.4, judge="jev", require_certificate=True, hold_if_monitor_stale=True, prune_stale=True)
    assert Changes().of(point) == Point(mode=Mode.ENFORCE, tau=0.4, judge="jev", prune_stale=True)
    assert Changes(judge="local", tau=0.0).of(point) == Point(mode=Mode.ENFORCE, tau=0.0, judge="local", prune_stale=True)


def test_a_folder_belongs_to_one_rerun(tmp_path):
    """The same plan finds its id again; another plan, or a folder with something in it, is refused; a cut line is compared again."""
    where = Where(fleets=["a"], since=datetime(2026, 11, 1, tzinfo=UTC))
    plan = plan_of(where, Changes(), "db", "1")
    folder = Folder(tmp_path / "w")
    made = folder.claim(plan)
    assert Folder(tmp_path / "w").claim(plan) == made
    with pytest.raises(OtherRerun):
        folder.claim(plan_of(replace(where, fleets=["b"]), Changes(), "db", "1"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(OtherRerun):
        Folder(tmp_path / "full").claim(plan)
    (tmp_path / "w" / "rerun.json").write_text("[")
    with pytest.raises(Permanent, match="damaged"):
        folder.claim(plan)
    one = compare("f", "r", str(UUID(int=1)), end(entry(1, "x")), end(entry(1, "x")))
    folder.add([one])
    with (tmp_path / "w" / "results.jsonl").open("a") as file:
        file.write('{"fleet": "f", "ru')
    assert list(folder.results()) == [one]
