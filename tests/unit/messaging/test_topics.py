"""The registry against a broker, as far as it can be compared without one."""

import importlib

import pytest

from winnow.contracts.topics import CANDIDATE, COMMITTED, DEAD_LETTER, EVIDENCE, OBSERVATION, RUNTIME, SCORES, TOPICS, Topic
from winnow.messaging.broker import consumer_options, producer_options
from winnow.messaging.lag import CONSUMPTIONS, STAGES, Lag, LagWatch
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.topics import Finding, Found, Severity, compare, topic_config
from winnow.telemetry import Telemetry

SETTINGS = KafkaSettings(partitions=4)


def as_registered(**changes):
    """A broker that has everything as the registry says, but for `changes` by topic."""
    return {t.name: Found(partitions=4, config=topic_config(t, SETTINGS) | changes.get(t.name, {})) for t in TOPICS}


def errors(findings):
    return [f for f in findings if f.severity is Severity.ERROR]


def test_a_broker_that_fits_has_no_findings():
    """What we create passes our own check."""
    assert compare(as_registered(), SETTINGS) == []


def test_a_broker_that_does_not_tell_its_configuration_has_no_findings():
    """Partitions alone are compared then."""
    assert compare({t.name: Found(partitions=4, config={}) for t in TOPICS}, SETTINGS) == []


@pytest.mark.parametrize("odd", [CANDIDATE, EVIDENCE, SCORES, COMMITTED])
def test_boundary_topics_must_have_the_same_number_of_partitions(odd):
    """Otherwise one run's boundaries would lose their order: an error that names all four."""
    found = as_registered() | {odd.name: Found(partitions=5, config={})}
    assert {f.topic for f in errors(compare(found, SETTINGS))} == {CANDIDATE.name, EVIDENCE.name, SCORES.name, COMMITTED.name}


def test_another_number_than_the_settings_is_a_warning():
    """Topics that somebody else created with more partitions work."""
    found = {name: Found(partitions=8, config=f.config) for name, f in as_registered().items()}
    findings = compare(found, SETTINGS)
    assert errors(findings) == []
    assert len(findings) == len(TOPICS)


@pytest.mark.parametrize(
    ("config", "severity", "word"),
    [
        ({"max.message.bytes": "1000012"}, Severity.ERROR, "raise it"),
        ({"max.message.bytes": "99999999"}, Severity.WARNING, "lower it"),
        ({"retention.ms": "-1"}, Severity.WARNING, "erasure"),
        ({"retention.ms": "31536000000"}, Severity.WARNING, "erasure"),
        ({"cleanup.policy": "compact"}, Severity.ERROR, "delete"),
    ],
)
def test_limits_that_do_not_fit_are_named_with_what_to_do(config, severity, word):
    """Sizes, retention and clean-up are compared with the registry."""
    [finding] = compare(as_registered(**{CANDIDATE.name: config}), SETTINGS)
    assert (finding.topic, finding.severity) == (CANDIDATE.name, severity)
    assert word in finding.problem


def test_nonsense_in_a_configuration_is_no_crash():
    """A broker may answer anything."""
    assert compare(as_registered(**{CANDIDATE.name: {"max.message.bytes": "many", "retention.ms": ""}}), SETTINGS) == []


def test_a_missing_topic_is_an_error():
    """With what to run."""
    found = as_registered()
    del found[OBSERVATION.name]
    assert compare(found, SETTINGS) == [
        Finding(topic=OBSERVATION.name, severity=Severity.ERROR, problem="it is missing; run `winnow topics ensure`")
    ]


@pytest.mark.parametrize("topic", TOPICS, ids=lambda t: t.name)
def test_consumers_can_fetch_what_topics_can_hold(topic):
    """A record above the fetch size could be skipped for good (aiokafka#1173)."""
    options = consumer_options(KafkaSettings(fetch_max_bytes=1024 * 1024), max_record_bytes=topic.max_record_bytes)
    assert options["max_partition_fetch_bytes"] >= int(topic_config(topic, SETTINGS)["max.message.bytes"])
    assert options["fetch_max_bytes"] >= options["max_partition_fetch_bytes"]
    assert producer_options(SETTINGS, service="x", idempotent=True)["max_request_size"] >= topic.max_record_bytes
    assert topic.max_record_bytes <= DEAD_LETTER.max_record_bytes


def test_every_group_is_of_one_service_and_one_topic():
    """Members of a group that read different topics would rebalance each other at every start."""
    assert len({KafkaSettings().group(service, topic.name) for service, topic in CONSUMPTIONS}) == len(CONSUMPTIONS)


def test_lag_is_counted_for_what_the_services_read_and_for_nothing_else():
    """A pair that no service reads would be behind by its whole topic, and grow until the gateway takes nothing more."""
    read = {
        (service, handler.topic.name)
        for service in ("retriever", "judge", "pruner", "drift_monitor")
        for handler in vars(importlib.import_module(f"services.{service}.handlers")).values()
        if isinstance(handler, type) and isinstance(getattr(handler, "topic", None), Topic)
    }
    assert {(service, topic.name) for service, topic in CONSUMPTIONS} == read
    assert all(service in topic.consumed_by for service, topic in CONSUMPTIONS)
    assert {service for service, _ in CONSUMPTIONS} >= STAGES


def test_only_the_stages_of_the_pipeline_keep_a_boundary_waiting():
    """A drift monitor that is behind is a number for operators; no boundary is refused for it."""
    watch = LagWatch(SETTINGS, Telemetry.plain("test"))
    watch._take([
        Lag(service="drift_monitor", topic=RUNTIME.name, by_partition=(9_000, 1)),
        Lag(service="judge", topic=EVIDENCE.name, by_partition=(2, 3)),
    ])  # fmt: skip
    assert watch.most == 5
    assert watch.records("drift_monitor", RUNTIME) == 9_001


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"kafka_security_protocol": "SASL_SSL"}, "SASL_USERNAME"),
        ({"heartbeat_interval_ms": 40_000}, "HEARTBEAT"),
        ({"hard_exit_s": 1.0}, "HARD_EXIT"),
        ({"kafka_ssl_keyfile": "x"}, "CERTFILE"),
        ({"topic_prefix": "a/b"}, "pattern"),
    ],
)
def test_settings_that_contradict_each_other_fail_at_start(changes, word):
    """The message names the variable to change."""
    with pytest.raises(ValueError, match=word):
        KafkaSettings(**changes)


def test_settings_come_from_the_environment_and_hide_the_password(monkeypatch):
    """Prefix WINNOW_; a password never shows."""
    for name, value in {
        "WINNOW_KAFKA_BOOTSTRAP_SERVERS": "a:1, b:2",
        "WINNOW_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "WINNOW_KAFKA_SASL_USERNAME": "u",
        "WINNOW_KAFKA_SASL_PASSWORD": "hunter2",
    }.items():
        monkeypatch.setenv(name, value)
    settings = KafkaSettings()
    options = settings.client_options()
    assert options["bootstrap_servers"] == ["a:1", "b:2"]
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("u", "hunter2")
    assert "hunter2" not in repr(settings)


def test_tls_is_made_where_the_protocol_asks_for_it():
    """The system's certificates serve where none are named; host names are checked."""
    context = KafkaSettings(kafka_security_protocol="SSL").client_options()["ssl_context"]
    assert context.check_hostname
    assert "ssl_context" not in KafkaSettings().client_options()


def test_every_setting_is_documented():
    """Each field says what it means."""
    assert all(field.description for field in KafkaSettings.model_fields.values())
