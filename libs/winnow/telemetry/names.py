"""The registry of metric names: what each counts, its labels, and what to do when it rises. Names and labels only grow within v1.

No label ever holds an id, a fleet, a run or any other value that callers choose: series are bounded by the code, not by the traffic.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

CounterName = Literal[
    # Counter: batches by how they ended. `failed` without `done` means that a stage stands still.
    "winnow_batches_total",
    # Counter: records by what became of them.
    "winnow_records_total",
    # Counter: boundaries by outcome and reason.
    "winnow_outcomes_total",
    # Counter: dead letters by source topic and reason.
    "winnow_dead_letters_total",
    # Counter: dead letters that stand in the table but could not be sent to the topic (too large, or the broker refused).
    "winnow_dead_letter_topic_failures_total",
    # Counter: records of an erased run that a later stage met and dropped.
    "winnow_erased_records_total",
    # Counter: events dropped because the same one came earlier in the batch.
    "winnow_duplicates_total",
    # Counter: records that failed alone by an error of our own. Look at the log event `handler_error`.
    "winnow_handler_errors_total",
    # Counter: attempts that failed for a passing reason and were repeated.
    "winnow_transient_errors_total",
    # Counter: events that the broker confirmed.
    "winnow_published_total",
    # Counter: events that the broker refused or did not confirm in time.
    "winnow_publish_errors_total",
    # Counter: times that partitions with records before them stood still, by what was done.
    "winnow_stalls_total",
    # Counter: claim checks by result.
    "winnow_claim_checks_total",
    # Counter: outbox rows sent.
    "winnow_outbox_sent_total",
    # Counter: stuck boundaries published again. Steady growth means that a later stage is too slow or down.
    "winnow_swept_total",
    # Counter: entries by section class and decision.
    "winnow_entries_total",
    # Counter: requests to a judge by result.
    "winnow_judge_requests_total",
    # Counter: calls of a judge that gave no usable answer, or not for every entry, by failure.
    "winnow_judge_failures_total",
    # Counter: tokens of a remote judge.
    "winnow_judge_tokens_total",
    # Counter, US dollars: cost of a remote judge.
    "winnow_judge_cost_usd_total",
    # Counter: what runtimes reported.
    "winnow_runtime_events_total",
    # Counter: places that were asked back or looked at, by result. Only `given` gave bytes.
    "winnow_recoveries_total",
    # Counter, bytes: what was given back.
    "winnow_recovered_bytes_total",
    # Counter: searches of originals and lists of pruned entries by result.
    "winnow_recovery_searches_total",
    # Counter: entries that were kept because an agent had asked for them back.
    "winnow_pinned_by_recovery_total",
    # Counter: alerts by kind.
    "winnow_alerts_total",
    # Counter: units of streams by what the monitor did with them.
    "winnow_units_total",
    # Counter: runs that were closed.
    "winnow_runs_closed_total",
    # Counter: deliveries to the webhook by result.
    "winnow_webhook_deliveries_total",
    # Counter: HTTP requests by route template and status.
    "winnow_http_requests_total",
]
GaugeName = Literal[
    # Gauge, seconds: age of the last successful poll. The liveness check reads the same value.
    "winnow_poll_age_seconds",
    # Gauge, seconds: age of the last committed batch.
    "winnow_commit_age_seconds",
    # Gauge: partitions that this consumer holds.
    "winnow_assigned_partitions",
    # Gauge: records that wait in a topic for a group.
    "winnow_consumer_lag_records",
    # Gauge: 1 while consumption is stopped because our own handler fails too often.
    "winnow_consumption_halted",
    # Gauge: 1 while an event of a newer major version stands at the head; deploy a service that reads it.
    "winnow_schema_too_new",
    # Gauge: 1 while the broker's access rules do not let this service read a topic or its group.
    "winnow_not_allowed",
    # Gauge: unsent outbox rows.
    "winnow_outbox_depth",
    # Gauge, seconds: age of the oldest unsent outbox row.
    "winnow_outbox_oldest_age_seconds",
    # Gauge, seconds: how late the event loop woke at the last look. Above a second, heartbeats are in danger.
    "winnow_event_loop_lag_seconds",
    # Gauge: fleets whose enforcement is held.
    "winnow_fleets_held",
    # Gauge: streams by status.
    "winnow_monitor_streams",
    # Gauge: natural log of the largest evidence of a stream that has not alarmed. No stream is named: labels are bounded by the code.
    "winnow_monitor_evidence_max",
    # Gauge, seconds: how long the timer of some stream has been over without a fold.
    "winnow_monitor_lag_seconds",
    # Gauge: deliveries to the webhook that wait.
    "winnow_webhook_waiting",
    # Gauge: always 1; the version is the label.
    "winnow_build_info",
]
HistogramName = Literal[
    # Histogram, seconds: one handler call.
    "winnow_handler_seconds",
    # Histogram: records of a batch.
    "winnow_batch_records",
    # Histogram, bytes: size of consumed records.
    "winnow_record_bytes",
    # Histogram, seconds: from the record's timestamp to the end of its batch.
    "winnow_stage_latency_seconds",
    # Histogram, seconds: from reception to commitment of a boundary.
    "winnow_boundary_seconds",
    # Histogram: scores of entries, in steps of 0.05 around the usual threshold.
    "winnow_judge_score",
    # Histogram: how far a judge's probability of an entry is from the local judge's.
    "winnow_judge_disagreement",
    # Histogram, seconds: one answer of a judge.
    "winnow_judge_seconds",
    # Histogram, seconds: one transaction of the monitor that folds.
    "winnow_fold_seconds",
    # Histogram, seconds: HTTP requests by route template.
    "winnow_http_request_seconds",
    # Histogram, seconds: one search of originals.
    "winnow_recovery_search_seconds",
    # Histogram, tokens: one call of a remote judge's model, by OpenTelemetry's GenAI conventions.
    "gen_ai_client_token_usage",
    # Histogram, seconds: one call of a remote judge's model, by the same conventions.
    "gen_ai_client_operation_duration_seconds",
]
MetricName = CounterName | GaugeName | HistogramName
Kind = Literal["counter", "gauge", "histogram"]

#: Seconds. From a tenth of the per-record goal to beyond the longest judge call.
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
SCORE_BUCKETS = tuple(round(0.05 * step, 2) for step in range(1, 20))
SIZE_BUCKETS = tuple(float(1024 * 4**power) for power in range(8))
COUNT_BUCKETS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
#: Those that the GenAI conventions advise (section "Generative AI client metrics"), so that charts made for other clients fit.
TOKEN_BUCKETS = tuple(float(4**power) for power in range(14))
CALL_BUCKETS = tuple(round(0.01 * 2**power, 2) for power in range(14))
#: Labels of the GenAI metrics: the conventions' attributes with underscores. Models and hosts are those that are configured; the model that
#: answers is left out, for the other side chooses its name.
GENAI_LABELS = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "server_address")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric: what it says and what to do about it."""

    name: MetricName
    kind: Kind
    #: Help text: what is counted, with the unit.
    doc: str
    labels: tuple[str, ...] = ()
    #: Upper bounds, for histograms.
    buckets: tuple[float, ...] = ()
    #: What an operator does when it looks wrong; empty where nothing is to be done.
    remedy: str = ""
    #: Name and unit (UCUM) over OTLP where a convention gives them; empty: made from `name`.
    otel: tuple[str, str] | None = None


def _counter(name: CounterName, doc: str, *labels: str, remedy: str = "") -> Metric:
    return Metric(name=name, kind="counter", doc=doc, labels=labels, remedy=remedy)


def _gauge(name: GaugeName, doc: str, *labels: str, remedy: str = "") -> Metric:
    return Metric(name=name, kind="gauge", doc=doc, labels=labels, remedy=remedy)


def _histogram(name: HistogramName, doc: str, *labels: str, buckets: tuple[float, ...] = LATENCY_BUCKETS, remedy: str = "") -> Metric:
    return Metric(name=name, kind="histogram", doc=doc, labels=labels, buckets=buckets, remedy=remedy)


_ALL = (
    _counter(
        "winnow_batches_total",
        "Batches by result: done, split (run again record by record), retried (sent back to the broker after a transient error), "
        "paused (newer schema), halted (too many errors of our own).",
        "service", "topic", "result",
        remedy="`retried` that grows while `done` stands still: the database or broker is away; read `batch_retried` in the log.",
    ),
    _counter("winnow_records_total", "Consumed records by result: handled, duplicate, dead.", "service", "topic", "result"),
    _counter("winnow_outcomes_total", "Boundaries by outcome and reason (reason is empty for judged).", "service", "outcome", "reason"),
    _counter(
        "winnow_dead_letters_total", "Dead letters by source topic and reason.", "service", "topic", "reason",
        remedy="`winnow dead-letters list` shows them; mend the producer, then `winnow dead-letters replay`.",
    ),
    _counter("winnow_erased_records_total", "Records of an erased run that a later stage met and dropped.", "service"),
    _counter(
        "winnow_dead_letter_topic_failures_total", "Dead letters in the table only: too large for the topic, or refused.",
        "service",
    ),
    _counter(
        "winnow_duplicates_total", "Events dropped because the same one came earlier in the batch.", "service", "topic",
        remedy="Rises after a restart; steady growth means a producer that sends everything twice.",
    ),
    _counter(
        "winnow_handler_errors_total", "Records that failed alone by an error of this service, after all attempts.", "service", "topic",
        remedy="A defect of ours: read `handler_error` in the log, deploy the fix, replay the dead letters.",
    ),
    _counter("winnow_transient_errors_total", "Attempts that failed for a passing reason.", "service", "topic"),
    _counter("winnow_published_total", "Events confirmed by the broker.", "service", "topic"),
    _counter(
        "winnow_publish_errors_total", "Events that were refused or not confirmed in time; their batch comes again.", "service", "topic",
        remedy="Read `publish_failed` in the log; check the broker's disks and `min.insync.replicas`.",
    ),
    _counter(
        "winnow_stalls_total",
        "Times that partitions with records before them stood still, by what was done: rejoin (the group was left and joined again), "
        "restart (that had not helped; liveness fails).",
        "service", "topic", "cure",
        remedy="Now and then `rejoin`: a client lost its group, and has found it again. `restart`, or ever more: see `partitions_stalled`.",
    ),
    _counter("winnow_claim_checks_total", "Claim checks by result: resolved, lost, mismatched.", "service", "result"),
    _counter("winnow_outbox_sent_total", "Outbox rows sent.", "service"),
    _counter(
        "winnow_swept_total", "Stuck boundaries published again, by topic.", "service", "topic",
        remedy="Steady growth: a later stage is down or slower than the time after which a boundary counts as stuck.",
    ),
    _counter("winnow_entries_total", "Entries by section class and decision.", "section_class", "decision"),
    _counter("winnow_judge_requests_total", "Requests to a judge by result: answered, failed, fallback, skipped.", "judge", "result"),
    _counter(
        "winnow_judge_failures_total", "Calls of a judge without a usable answer for every entry, by failure (docs/judges.md).",
        "judge", "failure",
        remedy="unauthorised, unpaid: mend key or account. circuit_open: the endpoint failed before; the other failures say how.",
    ),
    _counter("winnow_judge_tokens_total", "Tokens of a remote judge by direction: input, output.", "judge", "direction"),
    _counter("winnow_judge_cost_usd_total", "Cost of a remote judge in US dollars.", "judge"),
    _counter("winnow_runtime_events_total", "What agent runtimes reported, by kind.", "kind"),
    _counter(
        "winnow_recoveries_total",
        "Originals and parts of them that were asked for, by way (agent: asked back over HTTP, SDK or MCP; look: read; runtime: reported) "
        "and result: given, not_found, gone, failed.",
        "via", "result",
        remedy="`not_found` grows: agents invent handles, or use another fleet's key. `gone`: retention or erasure is ahead of their runs.",
    ),
    _counter("winnow_recovered_bytes_total", "Bytes of originals that were given back, by way: agent, look.", "via"),
    _counter(
        "winnow_recovery_searches_total",
        "Searches and lists by tool (search_history, pruned_entries) and result (found, nothing, refused).",
        "tool", "result",
        remedy="`refused` grows: more than four searches at once (answered 503), or runs that are not there.",
    ),
    _counter("winnow_pinned_by_recovery_total", "Entries that were kept because an agent had asked for them back."),
    _counter("winnow_alerts_total", "Alerts by kind.", "kind"),
    _counter(
        "winnow_units_total", "Units of streams by fate: folded, missing, late, refused; duplicate: observations that said nothing new.",
        "fate",
        remedy="`missing` grows: the grader is slow or down. `refused` grows: an older operating point or grader still reports.",
    ),
    _counter("winnow_runs_closed_total", "Runs that were closed, by why: run_ended or idle.", "because"),
    _counter(
        "winnow_webhook_deliveries_total", "Attempts to deliver an alert to the webhook by result: delivered, failed, given_up.", "result",
        remedy="`given_up`: the rows stay in webhook_deliveries with their last error; `winnow alerts` shows the alerts.",
    ),
    _counter("winnow_http_requests_total", "HTTP requests by method, route template and status.", "method", "route", "status"),
    _gauge(
        "winnow_poll_age_seconds", "Seconds since the consumer last polled or ended a batch; 0 while one is at work.", "service", "topic",
        remedy="Grows without bound: the consumer hangs (aiokafka#1154); the liveness check ends the process.",
    ),
    _gauge("winnow_commit_age_seconds", "Seconds since a batch was last acknowledged (or the consumer started).", "service", "topic"),
    _gauge("winnow_assigned_partitions", "Partitions that this consumer holds.", "service", "topic"),
    _gauge(
        "winnow_consumer_lag_records", "Records that wait in a topic for a consumer group.", "service", "topic",
        remedy="Grows: add processes, up to the number of partitions.",
    ),
    _gauge(
        "winnow_consumption_halted", "1 while consumption is stopped because this service's own errors pile up.", "service", "topic",
        remedy="A bad deploy: nothing is lost; roll back, and consumption goes on where it stopped.",
    ),
    _gauge(
        "winnow_schema_too_new", "1 while an event of a newer major version stands at the head of a partition.", "service", "topic",
        remedy="Deploy a service that reads it; consumption goes on by itself.",
    ),
    _gauge(
        "winnow_not_allowed", "1 while the broker's access rules do not let this service read a topic or its group.", "service", "topic",
        remedy="`not_allowed` in the log and `/readyz` say what to grant; it goes on by itself then, without a restart.",
    ),
    _gauge("winnow_outbox_depth", "Unsent outbox rows.", "service"),
    _gauge(
        "winnow_outbox_oldest_age_seconds", "Age of the oldest unsent outbox row in seconds.", "service",
        remedy="Grows: the broker is away, or no relay runs.",
    ),
    _gauge(
        "winnow_event_loop_lag_seconds", "How late the event loop woke at the last look, in seconds.", "service",
        remedy="Above 1: something blocks the loop, and heartbeats are in danger; take a stack dump (`SIGUSR1`).",
    ),
    _gauge("winnow_fleets_held", "Fleets whose enforcement is held.", remedy="`winnow fleet show` says why."),
    _gauge("winnow_monitor_streams", "Streams by status.", "status", remedy="alarm or held: `winnow streams list` says which."),
    _gauge("winnow_monitor_evidence_max", "Natural log of the largest evidence of a stream that has not alarmed, by family.", "family"),
    _gauge(
        "winnow_monitor_lag_seconds", "Seconds since the oldest timer of a stream ran out without a fold.",
        remedy="Grows: no monitor runs, or the database is slow.",
    ),
    _gauge("winnow_webhook_waiting", "Deliveries to the webhook that wait.", remedy="Grows: the other side does not take them."),
    _gauge("winnow_build_info", "Always 1; the label is the version.", "version"),
    _histogram("winnow_handler_seconds", "Seconds of one handler call.", "service", "topic"),
    _histogram("winnow_batch_records", "Records of a batch.", "service", "topic", buckets=COUNT_BUCKETS),
    _histogram("winnow_record_bytes", "Bytes of consumed records.", "topic", buckets=SIZE_BUCKETS),
    _histogram("winnow_stage_latency_seconds", "Seconds from a record's timestamp to the end of its batch.", "service", "topic"),
    _histogram("winnow_boundary_seconds", "Seconds from the reception of a boundary to its commitment, by outcome.", "outcome"),
    _histogram("winnow_judge_score", "Scores of entries, after caps.", "judge", buckets=SCORE_BUCKETS),
    _histogram(
        "winnow_judge_disagreement", "Distance of a judge's probability of an entry from the local judge's.", "judge",
        buckets=SCORE_BUCKETS,
        remedy="A shift without a new version on either side: the judge, its model or what it is shown has changed.",
    ),
    _histogram("winnow_judge_seconds", "Seconds of one judge answer.", "judge"),
    _histogram("winnow_fold_seconds", "Seconds of one transaction of the monitor that folds."),
    _histogram("winnow_http_request_seconds", "Seconds of an HTTP request by route template.", "route"),
    _histogram("winnow_recovery_search_seconds", "Seconds of one search of originals."),
    Metric(
        name="gen_ai_client_token_usage", kind="histogram", otel=("gen_ai.client.token.usage", "{token}"), buckets=TOKEN_BUCKETS,
        doc="Tokens of one call of a remote judge's model, by type: input, output; only where the answer tells them.",
        labels=(*GENAI_LABELS, "gen_ai_token_type"),
    ),
    Metric(
        name="gen_ai_client_operation_duration_seconds", kind="histogram", otel=("gen_ai.client.operation.duration", "s"),
        doc="Seconds of one call of a remote judge's model, retries included; error_type is empty where it gave every answer.",
        labels=(*GENAI_LABELS, "error_type"), buckets=CALL_BUCKETS,
        remedy="Grows: the provider is slow; what is later than the deadline is `unjudged`, or the fallback's.",
    ),
)  # fmt: skip

METRICS: Mapping[MetricName, Metric] = {metric.name: metric for metric in _ALL}
