"""Events that are nearly right: one place of a real one changed, as a broken or hostile producer would."""

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness import REPOSITORY
from winnow.contracts.envelope import decode, encode
from winnow.contracts.errors import Permanent, TooLarge
from winnow.contracts.events import Event
from winnow.contracts.topics import TOPICS, Topic

GOLDEN = REPOSITORY / "tests" / "contract" / "golden"
EVENTS = [
    (topic, json.loads(file.read_text()))
    for topic in TOPICS
    if topic.event is not None
    for file in sorted(GOLDEN.glob(f"v*/{topic.event.__name__.lower().removesuffix('event')}*.json"))
]
#: What is put where something else is wanted.
HOSTILE: list[Any] = [
    None, True, -1, 0, 2**63, 10**400, 1e308, float("nan"), float("inf"), "", "\x00", "\ud800", "a" * 10_000, "../../etc/passwd",
    "'; DROP TABLE x; --", "${jndi:ldap://x}", "\u202e\u2066", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00-23:59", [], {}, [[[[[[]]]]]],
    {"a": {"a": {"a": {}}}}, [None] * 100,
]  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += _places(inner, (*path, key))
    return found


@st.composite
def changed(draw: st.DrawFn) -> tuple[Any, bytes]:
    """A topic, and the body of an event of it after one to three changes."""
    topic, event = draw(st.sampled_from(EVENTS))
    body = copy.deepcopy(event)
    for _ in range(draw(st.integers(1, 3))):
        places = _places(body)
        if not places:
            break
        *way, last = draw(st.sampled_from(places))
        at = body
        for key in way:
            at = at[key]
        what = draw(st.sampled_from(["replace", "delete", "insert", "text"]))
        if what == "delete":
            del at[last]
        elif what == "text":
            at[last] = draw(st.text(alphabet=st.characters(exclude_categories=[]), max_size=50))
        elif what == "insert" and isinstance(at, dict):
            at[draw(st.sampled_from(["fleet", "", "__class__", "constructor", "x" * 300]))] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
        else:
            at[last] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
    return topic, json.dumps(body).encode("utf-8", "surrogatepass")


def test_there_are_events_to_change():
    """Every kind of event has a golden one, so that none is left out here in silence."""
    assert {topic.name for topic, _ in EVENTS} == {topic.name for topic in TOPICS if topic.event is not None}


@settings(max_examples=250)
@given(changed())
def test_a_changed_event_is_valid_or_refused(case):
    """It is decoded, and then encodes and decodes to the same; or it is refused with a reason and a short text. Nothing else."""
    topic, body = case
    event = _decoded(topic, body)
    if event is None:
        return
    try:
        again = decode(topic.event, encode(topic, event))
    except TooLarge:
        return
    assert again == event


@given(st.sampled_from(EVENTS), st.data())
def test_a_cut_or_patched_body_is_valid_or_refused(case, data):
    """Bytes that are cut off, doubled or overwritten anywhere do the same."""
    topic, event = case
    body = bytearray(json.dumps(event).encode())
    at = data.draw(st.integers(0, len(body)))
    patch = data.draw(st.binary(max_size=8))
    body[at : at + data.draw(st.integers(0, 8))] = patch
    _decoded(topic, bytes(body))


def _decoded(topic: Topic, body: bytes) -> Event | None:
    """The event; None where it is refused, which must be said with a reason and a text that a log takes."""
    try:
        return decode(topic.event, body)
    except Permanent as exc:
        refused = exc
    assert refused.reason
    assert len(str(refused)) < 5_000
    return None
