"""Events as released in v1: what was valid once stays valid, and says the same.

A file of `golden/v1` is never edited. A new optional field or word needs no new file; a new kind of event does.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from winnow.contracts import envelope, events, topics, vocabulary

GOLDEN = Path(__file__).parent / "golden" / "v1"
#: Every word that v1 was released with. Within v1 the lists only grow.
WORDS = json.loads((Path(__file__).parent / "golden" / "words.json").read_text())


def golden_events() -> list[str]:
    return sorted(p.stem for p in GOLDEN.glob("*.json") if p.stem != "headers")


def read(name: str) -> tuple[type[events.Model], dict[str, Any]]:
    stored = json.loads((GOLDEN / f"{name}.json").read_text())
    return getattr(events, stored["model"]), stored["body"]


def assert_said(golden: Any, now: Any, path: str = "body") -> None:
    """Every value of `golden` is in `now`, in the same place; `now` may hold more."""
    if isinstance(golden, dict):
        assert isinstance(now, dict), path
        for key, value in golden.items():
            assert key in now, f"{path}.{key} was renamed or dropped: v1 only grows"
            assert_said(value, now[key], f"{path}.{key}")
    elif isinstance(golden, list):
        assert len(golden) == len(now), path
        for i, (one, other) in enumerate(zip(golden, now, strict=True)):
            assert_said(one, other, f"{path}[{i}]")
    else:
        assert golden == now, f"{path} changed its value or its form on the wire"


@pytest.mark.parametrize("name", golden_events())
def test_a_golden_event_still_validates_and_keeps_all_that_it_says(name):
    """An event of v1 is read by today's model, and every value of it comes out again in its place."""
    model, body = read(name)
    assert_said(body, model.model_validate_json(json.dumps(body)).model_dump(mode="json"))


@pytest.mark.parametrize("name", golden_events())
def test_unknown_fields_of_a_later_minor_version_are_ignored(name):
    """A field that this version does not know changes nothing, at the top and inside."""
    model, body = read(name)
    known = model.model_validate_json(json.dumps(body))

    def grow(value: Any) -> Any:
        if isinstance(value, dict):
            free_names = {"features"}  # a map of names, not a model
            return {k: v if k in free_names else grow(v) for k, v in value.items()} | {"added_in_v1_9": {"deep": [1, None, "x"]}}
        return [grow(v) for v in value] if isinstance(value, list) else value

    assert model.model_validate_json(json.dumps(grow(body))) == known


@pytest.mark.parametrize("name", golden_events())
def test_an_event_reads_back_what_it_writes(name):
    """Writing an event and reading it again gives an equal event."""
    model, body = read(name)
    event = model.model_validate_json(json.dumps(body))
    assert model.model_validate_json(event.model_dump_json()) == event


@pytest.mark.parametrize("name", [n for n in golden_events() if n.endswith((".minimal", ".rejected"))])
def test_no_required_field_was_added(name):
    """The shortest event of v1 has every field that today's model demands; a new field needs a default."""
    model, body = read(name)
    demanded = {k for k, f in model.model_fields.items() if f.is_required()}
    filled_by_the_reader = {"boundary_id", "candidate_sha256"} if model is events.Candidate else set()
    assert demanded - filled_by_the_reader <= set(body)


def test_a_new_required_field_would_be_noticed():
    """A model with one more required field refuses the shortest event of v1, so that the golden files do guard it."""

    class Grown(events.Alert):
        added: str

    _, body = read("alert.minimal")
    with pytest.raises(ValidationError, match="added"):
        Grown.model_validate_json(json.dumps(body))


def test_every_event_of_the_registry_has_golden_files():
    """Each topic's event, and what travels beside it, stands in the golden files."""
    seen = {read(name)[0] for name in golden_events()}
    assert {t.event for t in topics.TOPICS if t.event} | {events.ClaimCheck, events.Messages} <= seen


def test_every_field_of_an_event_is_told_apart_by_a_golden_file():
    """All fields that an event has at the top level in v1 occur in a golden file of it, so that none can be renamed unseen."""
    said: dict[type[events.Model], set[str]] = {}
    for name in golden_events():
        model, body = read(name)
        said.setdefault(model, set()).update(body)
    released = json.loads((Path(__file__).parent / "golden" / "fields.json").read_text())
    for model, keys in said.items():
        assert set(released[model.__name__]) <= keys, model.__name__


@pytest.mark.parametrize("topic_name", sorted(json.loads((GOLDEN / "headers.json").read_text())))
def test_golden_headers_are_still_read(topic_name):
    """Headers that a v1 producer wrote pass the type check and give id, source, time and trace."""
    headers = json.loads((GOLDEN / "headers.json").read_text())[topic_name]
    topic = topics.topic_named(topic_name)
    assert topic is not None
    read_back = envelope.read_headers([(k, v.encode()) for k, v in headers.items()])
    envelope.check_type(topic, read_back)
    assert (read_back.id, read_back.source, read_back.time) == (headers["ce_id"], headers["ce_source"], headers["ce_time"])
    assert read_back.traceparent == headers.get("traceparent")
    assert read_back.claim == ("winnow_claim" in headers)


@pytest.mark.parametrize("name", sorted(WORDS))
def test_no_word_was_taken_back(name):
    """Every word of a closed list that v1 was released with is still in it."""
    now = {word.value for word in getattr(vocabulary, name)}
    assert set(WORDS[name]) <= now


def test_modes_stay_ordered_from_mild_to_strong():
    """The mildest of the three modes wins, whatever the order of asking."""
    shadow, annotate, enforce = vocabulary.Mode.SHADOW, vocabulary.Mode.ANNOTATE, vocabulary.Mode.ENFORCE
    assert vocabulary.mildest(enforce, shadow, annotate) is shadow
    assert vocabulary.mildest(enforce, annotate) is annotate
    assert [m.strength for m in (shadow, annotate, enforce)] == [0, 1, 2]
