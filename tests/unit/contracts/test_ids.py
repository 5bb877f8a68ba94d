"""Identifiers and hashes: functions of their inputs, frozen for good."""

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from winnow.contracts import ids
from winnow.contracts.events import Candidate, ClaimCheck, Message, Messages, sha256

NAMES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=1, max_size=20)


def candidate(**fields: object) -> Candidate:
    return Candidate.model_validate({"fleet": "default", "run": "run-17", "index": 2, "candidate": "- one\n"} | fields)


def test_identifiers_are_frozen():
    """These values were released: another value would make a second boundary of every resubmission."""
    assert UUID("6f0e0b9a-5f0c-5a3e-9d6e-3d1c7a9f4b21") == ids.NAMESPACE
    assert ids.boundary_id("default", "run-17", 2, "0" * 64) == UUID("afbf2752-06e1-5e20-8129-53b402e4d30d")
    assert ids.event_id("default", UUID(int=7), "winnow.boundary.scores.v1") == UUID("c8dce8dd-d694-59ee-a977-8825a34a1e9b")


def test_the_request_hash_is_frozen():
    """The hash of a released request never changes: a retry after an upgrade is still the same request."""
    assert candidate().request_sha256() == "d947837c9f0b9ed024a80357c68ed52ad6218f5ec525223ed02d0fa7c87d7622"
    full = candidate(
        agent="booking", host="openclaw", profile="openclaw", mode="enforce", task="T", previous_summary="M", pins=["a"],
        history=[{"i": 0, "kind": "environment", "text": "é", "tool": "ls"}], retained=[{"i": 1, "kind": "action", "text": "x"}],
        custom_instructions="keep", compressor="c", user_turns_survive=False,
    )  # fmt: skip
    assert full.request_sha256() == "185c434bb6dd6c92b2471e03a22494a8dd2b6aa25799e6631b6cfa14eea5a96a"


@pytest.mark.parametrize(
    "change",
    [
        {"deadline": datetime(2030, 1, 1, tzinfo=UTC)},
        {"trigger": "manual"},
        {"tokens_before": 5, "tokens_after": 1},
        {"boundary_at": datetime(2030, 1, 1, tzinfo=UTC)},
        {"boundary_id": UUID(int=9)},
        {"previous_boundary_id": UUID(int=8)},
        {"added_in_v1_9": "x"},
    ],
    ids=lambda c: next(iter(c)),
)
def test_what_a_retry_may_change_is_not_in_the_request_hash(change):
    """Deadline, trigger, token counts and times do not make another request."""
    assert candidate(**change).request_sha256() == candidate().request_sha256()


@pytest.mark.parametrize(
    "change",
    [
        {"fleet": "other"},
        {"run": "run-18"},
        {"agent": "b"},
        {"index": 3},
        {"host": "codex"},
        {"profile": "codex"},
        {"mode": "enforce"},
        {"rules": "published"},
        {"task": "T"},
        {"history": [{"i": 0, "kind": "user", "text": "x"}]},
        {"retained": [{"i": 0, "kind": "user", "text": "x"}]},
        {"previous_summary": ""},
        {"previous_summary": "M"},
        {"candidate": "- two\n"},
        {"pins": ["a"]},
        {"custom_instructions": "x"},
        {"compressor": "x"},
        {"user_turns_survive": True},
    ],
    ids=json.dumps,
)
def test_what_is_asked_is_in_the_request_hash(change):
    """Every field that may change the answer makes another request."""
    assert candidate(**change).request_sha256() != candidate().request_sha256()


def test_history_and_retained_are_told_apart():
    """The same message in H or in R is another question."""
    message = {"i": 0, "kind": "environment", "text": "x"}
    assert candidate(history=[message]).request_sha256() != candidate(retained=[message]).request_sha256()


@given(
    st.lists(st.builds(Message, i=st.integers(0, 99), kind=st.sampled_from(["user", "action"]), text=st.text(st.characters(codec="utf-8"))))
)
def test_inline_and_claim_checked_messages_are_one_request(history):
    """The same content, inline or stored first, has one request hash: the SDK may choose either on a retry."""
    stored = Messages(history=tuple(history))
    content = stored.content()
    claim = ClaimCheck(fleet="default", handle="h" * 32, sha256=sha256(content), size=len(content))
    claimed = candidate(messages=claim.model_dump())
    assert claimed.request_sha256() == candidate(history=[m.model_dump() for m in history]).request_sha256()
    assert Messages.model_validate_json(content) == stored


@given(NAMES, NAMES, st.integers(1, 10**9), st.text(max_size=30, alphabet=st.characters(codec="utf-8")))
def test_a_boundary_without_an_id_gets_the_same_one_each_time(fleet_seed, run, index, text):
    """Fleet, run, index and candidate decide the id; nothing else does."""
    fleet = "f" + sha256(fleet_seed)[:8]
    fields = {"fleet": fleet, "run": run, "index": index, "candidate": text}
    first = Candidate.model_validate(fields)
    second = Candidate.model_validate(fields | {"task": "another", "mode": "enforce"})
    assert first.boundary_id == second.boundary_id == ids.boundary_id(fleet, run, index, sha256(text))
    assert first.candidate_sha256 == sha256(text)


def test_the_parts_of_an_id_cannot_be_shifted_into_each_other():
    """A run and index that read alike when joined are still two boundaries."""
    assert ids.boundary_id("f", "r1", 1, "h") != ids.boundary_id("f", "r", 11, "h")


def test_an_id_of_the_callers_own_is_kept():
    """A caller that names its boundary keeps the name."""
    assert candidate(boundary_id=UUID(int=5)).boundary_id == UUID(int=5)


def test_one_boundary_id_however_the_index_is_written():
    """A producer that writes the index as 2, 2.0 or "2" names the same boundary; an index that is refused names none."""

    def read(index: str) -> Candidate:
        return Candidate.model_validate_json('{"fleet":"acme","run":"r","candidate":"text","index":' + index + "}")

    written = {read(index).boundary_id for index in ("2", "2.0", '"2"')}
    assert len(written) == 1
    for refused in ("null", '"two"', "2.5", "1e400"):
        with pytest.raises(ValidationError):
            read(refused)
