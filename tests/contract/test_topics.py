"""The topic registry: names, keys and sizes that fit together."""

import re
from datetime import timedelta

import pytest

from winnow.contracts import limits, topics
from winnow.contracts.events import BoundaryRef, Candidate

BOUNDARY = (topics.CANDIDATE, topics.EVIDENCE, topics.SCORES, topics.COMMITTED)
#: Room for key, headers and batch framing: a key of 265 bytes, ten headers, and the envelope of one record batch.
OVERHEAD = 8 * limits.KIB


def test_the_registry_is_the_designs_table():
    """Names and keys are what producers and consumers were told."""
    assert {t.name: t.key for t in topics.TOPICS} == {
        "winnow.boundary.candidate.v1": "fleet/run",
        "winnow.boundary.evidence.v1": "fleet/run",
        "winnow.boundary.scores.v1": "fleet/run",
        "winnow.boundary.committed.v1": "fleet/run",
        "winnow.runtime.v1": "fleet/run",
        "winnow.observation.v1": "fleet/stream",
        "winnow.alert.v1": "fleet",
        "winnow.dead-letter.v1": "source key",
    }


@pytest.mark.parametrize("topic", topics.TOPICS, ids=lambda t: t.name)
def test_a_full_body_fits_its_record(topic):
    """The largest allowed body, with key and headers, stays below the topic's `max.message.bytes`, uncompressed."""
    assert topic.max_body_bytes + OVERHEAD <= topic.max_record_bytes


def test_whatever_can_arrive_can_become_a_dead_letter():
    """The dead-letter topic takes the largest record of any other topic and the reasons beside it."""
    largest = max(t.max_record_bytes for t in topics.TOPICS if t is not topics.DEAD_LETTER)
    assert topics.DEAD_LETTER.max_record_bytes >= largest + 64 * limits.KIB


def test_sizes_are_the_designs():
    """8 MiB of candidate body, 9 MiB of candidate record, 10 MiB of dead letter."""
    mib = 1024 * 1024
    assert (topics.CANDIDATE.max_body_bytes, topics.CANDIDATE.max_record_bytes) == (8 * mib, 9 * mib)
    assert topics.DEAD_LETTER.max_record_bytes == 10 * mib


@pytest.mark.parametrize("topic", BOUNDARY, ids=lambda t: t.name)
def test_content_leaves_the_bus_within_its_horizon(topic):
    """Topics that carry an agent's content keep it at most seven days."""
    assert topic.retention <= timedelta(days=7)


def test_the_boundary_topics_share_one_number_of_partitions():
    """No topic has partitions of its own: one number for all keeps the boundaries of a run in order through every stage."""
    assert not [f for f in topics.Topic.__dataclass_fields__ if "partition" in f]
    assert topics.DEFAULT_PARTITIONS > 0
    assert {t.key for t in BOUNDARY} == {"fleet/run"}


@pytest.mark.parametrize("topic", topics.TOPICS, ids=lambda t: t.name)
def test_a_topic_is_named_after_its_type_and_version(topic):
    """Name and CloudEvents type are one, end in a major version, and are legal Kafka names with room for a prefix."""
    assert topic.event_type == topic.name
    assert re.fullmatch(r"winnow\.[a-z.-]+\.v1", topic.name)
    assert len(topic.name) <= 249 - 60


def test_a_topic_is_found_by_its_prefixed_name():
    """A prefix stands before every name; another prefix finds nothing."""
    assert topics.topic_named("t1.winnow.alert.v1", "t1.") is topics.ALERT
    assert topics.topic_named("winnow.alert.v1", "t1.") is None
    assert topics.topic_named("nothing") is None


@pytest.mark.parametrize("topic", BOUNDARY, ids=lambda t: t.name)
def test_every_stage_keys_a_boundary_the_same_way(topic):
    """Candidate, evidence, scores and committed of one run have one key, so that they pass the same partition."""
    assert topic.event is not None
    assert issubclass(topic.event, Candidate | BoundaryRef)
    assert topic.event.key.fget(type("Any", (), {"fleet": "f", "run": "r"})()) == "f/r"


def test_produced_and_consumed_is_told_for_every_topic():
    """Each topic says who writes and who reads it."""
    assert all(t.produced_by and t.consumed_by and t.description for t in topics.TOPICS)
