"""Grafana dashboards, made from the registry of metrics: `python -m winnow.telemetry.dashboards FOLDER`.

A panel names its metrics by their typed names, so that a dashboard cannot ask for one that is not there; a test keeps the files as they are
made here.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from winnow.telemetry.names import METRICS, CounterName, GaugeName, HistogramName

#: Of Grafana's dashboard model; Grafana migrates older ones when it loads them.
SCHEMA_VERSION: Final = 39
#: Grafana's grid: columns of a dashboard, and rows that a panel takes.
COLUMNS, HEIGHT = 24, 8
#: How a rate is taken: Grafana's interval for the zoom at hand, at least four scrapes.
WINDOW: Final = "$__rate_interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One PromQL expression and the legend of its series."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart."""

    title: str
    queries: tuple[Query, ...]
    #: Grafana's unit id: short, s, bytes, percentunit, currencyUSD, ...
    unit: str = "short"
    #: timeseries, stat or heatmap.
    kind: str = "timeseries"
    #: Of 24 columns.
    width: int = 8
    #: What it says, and what to do when it looks wrong.
    doc: str = ""
    stacked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """One page."""

    uid: str
    title: str
    doc: str
    rows: tuple[tuple[str, tuple[Panel, ...]], ...]


def _selector(where: str) -> str:
    return f"{{{where}}}" if where else ""


def rate(name: CounterName, *by: str, where: str = "") -> Query:
    """Events a second, by labels."""
    return Query(expr=f"sum by ({', '.join(by)}) (rate({name}{_selector(where)}[{WINDOW}]))", legend=_legend(by))


def latest(name: GaugeName, *by: str, how: str = "max", where: str = "") -> Query:
    """A gauge now, by labels: the largest of all processes unless told otherwise."""
    return Query(expr=f"{how} by ({', '.join(by)}) ({name}{_selector(where)})", legend=_legend(by))


def quantile(q: float, name: HistogramName, *by: str) -> Query:
    """A quantile of a histogram, by labels."""
    labels = ", ".join((*by, "le"))
    expr = f"histogram_quantile({q}, sum by ({labels}) (rate({name}_bucket[{WINDOW}])))"
    return Query(expr=expr, legend=f"p{100 * q:g} {_legend(by)}".strip())


def heat(name: HistogramName) -> Query:
    """A histogram over time."""
    return Query(expr=f"sum by (le) (increase({name}_bucket[{WINDOW}]))", legend="{{le}}")


def share(name: CounterName, part: str, *, whole: str = "") -> Query:
    """What share of a counter's events some labels have."""
    of_part = f"(sum(rate({name}{_selector(part)}[{WINDOW}])) or vector(0))"  # no series: it never happened
    return Query(expr=f"{of_part} / sum(rate({name}{_selector(whole)}[{WINDOW}]))", legend="share")


def _legend(by: tuple[str, ...]) -> str:
    return " ".join(f"{{{{{label}}}}}" for label in by)


def metrics_of(panel: Panel) -> set[str]:
    """Names of the registry that a panel asks for, in whatever form (`_bucket`, ...)."""
    return {name for name in METRICS for query in panel.queries if name in query.expr}


FLEETS: Final = Dashboard(
    uid="winnow-fleets",
    title="Winnow: fleets",
    doc="What comes in, what becomes of it, and how long agents wait.",
    rows=(
        (
            "Now",
            (
                Panel(title="Boundaries a second", kind="stat", width=4, unit="reqps", queries=(rate("winnow_outcomes_total"),)),
                Panel(
                    title="Entries pruned", kind="stat", width=4, unit="percentunit",
                    queries=(share("winnow_entries_total", 'decision="pruned"'),),
                ),
                Panel(
                    title="Unjudged", kind="stat", width=4, unit="percentunit",
                    queries=(share("winnow_outcomes_total", 'outcome="unjudged"'),),
                ),
                Panel(title="Fleets held", kind="stat", width=4, queries=(latest("winnow_fleets_held"),)),
                Panel(title="Streams in alarm", kind="stat", width=4, queries=(latest("winnow_monitor_streams", where='status="alarm"'),)),
                Panel(
                    title="Dead letters in 24 h", kind="stat", width=4,
                    queries=(Query(expr="sum(increase(winnow_dead_letters_total[24h])) or vector(0)"),),
                ),
            ),
        ),
        (
            "Boundaries",
            (
                Panel(title="Outcomes", unit="reqps", stacked=True, queries=(rate("winnow_outcomes_total", "outcome"),)),
                Panel(
                    title="Reasons of what was not judged", unit="reqps", stacked=True,
                    queries=(rate("winnow_outcomes_total", "reason", where='reason!=""'),),
                ),
                Panel(
                    title="From reception to commitment", unit="s",
                    queries=(quantile(0.5, "winnow_boundary_seconds"), quantile(0.99, "winnow_boundary_seconds")),
                ),
                Panel(title="Entries by decision", unit="short", stacked=True, queries=(rate("winnow_entries_total", "decision"),)),
                Panel(
                    title="Pruned by section", unit="short", stacked=True,
                    queries=(rate("winnow_entries_total", "section_class", where='decision="pruned"'),),
                ),
                Panel(
                    title="What runtimes report", unit="short", queries=(rate("winnow_runtime_events_total", "kind"),),
                    doc="`bypassed` grows: the SDK did not hear Winnow in time.",
                ),
            ),
        ),
        (
            "Recovery",
            (
                Panel(title="Originals asked for", queries=(rate("winnow_recoveries_total", "via", "result"),)),
                Panel(title="Bytes given back", unit="Bps", queries=(rate("winnow_recovered_bytes_total", "via"),)),
                Panel(title="Searches and lists", queries=(rate("winnow_recovery_searches_total", "tool", "result"),)),
            ),
        ),
        (
            "Gateway",
            (
                Panel(title="Requests by status", unit="reqps", stacked=True, queries=(rate("winnow_http_requests_total", "status"),)),
                Panel(title="Request time by route", unit="s", queries=(quantile(0.99, "winnow_http_request_seconds", "route"),)),
                Panel(
                    title="Outbox: age of the oldest row", unit="s", queries=(latest("winnow_outbox_oldest_age_seconds"),),
                    doc="Grows: the broker is away, or no gateway runs. Nothing is lost.",
                ),
            ),
        ),
    ),
)  # fmt: skip

PIPELINE: Final = Dashboard(
    uid="winnow-pipeline",
    title="Winnow: pipeline",
    doc="Every stage: what waits, how fast it goes, what fails.",
    rows=(
        (
            "Waiting",
            (
                Panel(title="Lag by service", queries=(latest("winnow_consumer_lag_records", "service", "topic"),)),
                Panel(title="Partitions held", queries=(latest("winnow_assigned_partitions", "service", "topic", how="sum"),)),
                Panel(title="Outbox rows", queries=(latest("winnow_outbox_depth"),)),
            ),
        ),
        (
            "Work",
            (
                Panel(title="Records", unit="reqps", queries=(rate("winnow_records_total", "service", "result"),)),
                Panel(title="Handler call (p99)", unit="s", queries=(quantile(0.99, "winnow_handler_seconds", "service"),)),
                Panel(
                    title="Record's time to the end of its batch (p99)", unit="s",
                    queries=(quantile(0.99, "winnow_stage_latency_seconds", "service"),),
                ),
                Panel(title="Records of a batch (median)", queries=(quantile(0.5, "winnow_batch_records", "service"),)),
                Panel(title="Record size (p99)", unit="bytes", queries=(quantile(0.99, "winnow_record_bytes", "topic"),)),
                Panel(title="Published", unit="reqps", queries=(rate("winnow_published_total", "service", "topic"),)),
            ),
        ),
        (
            "Trouble",
            (
                Panel(
                    title="Batches that were not simply done",
                    queries=(rate("winnow_batches_total", "service", "result", where='result!="done"'),),
                ),
                Panel(
                    title="Errors", queries=(
                        rate("winnow_handler_errors_total", "service"), rate("winnow_transient_errors_total", "service"),
                        rate("winnow_publish_errors_total", "service"),
                    ),
                ),
                Panel(title="Dead letters", queries=(rate("winnow_dead_letters_total", "topic", "reason"),)),
                Panel(title="Seconds since the last poll", unit="s", queries=(latest("winnow_poll_age_seconds", "service", "topic"),)),
                Panel(title="Event loop wakes late by", unit="s", queries=(latest("winnow_event_loop_lag_seconds", "service"),)),
                Panel(title="Stuck boundaries swept", queries=(rate("winnow_swept_total", "topic"),)),
                Panel(
                    title="Halted, waiting for a newer service, or not allowed",
                    queries=(
                        latest("winnow_consumption_halted", "service"), latest("winnow_schema_too_new", "service"),
                        latest("winnow_not_allowed", "service"),
                    ),
                ),
                Panel(title="Partitions that stood still", queries=(rate("winnow_stalls_total", "service", "cure"),)),
                Panel(title="Claim checks", queries=(rate("winnow_claim_checks_total", "result"),)),
                Panel(
                    title="Duplicates and records of erased runs",
                    queries=(rate("winnow_duplicates_total", "service"), rate("winnow_erased_records_total", "service")),
                ),
            ),
        ),
    ),
)  # fmt: skip

ASSURANCE: Final = Dashboard(
    uid="winnow-assurance",
    title="Winnow: judges and drift",
    doc="What judges say and cost, and what the drift monitor has seen.",
    rows=(
        (
            "Judges",
            (
                Panel(title="Scores", kind="heatmap", queries=(heat("winnow_judge_score"),)),
                Panel(title="Answer time (p99)", unit="s", queries=(quantile(0.99, "winnow_judge_seconds", "judge"),)),
                Panel(
                    title="Distance from the local judge (median)", queries=(quantile(0.5, "winnow_judge_disagreement", "judge"),),
                    doc="A shift without a new version: the judge, its model or what it is shown has changed.",
                ),
                Panel(title="Requests", unit="reqps", queries=(rate("winnow_judge_requests_total", "judge", "result"),)),
                Panel(title="Failures", unit="reqps", queries=(rate("winnow_judge_failures_total", "judge", "failure"),)),
                Panel(
                    title="Cost an hour", unit="currencyUSD",
                    queries=(Query(expr="sum by (judge) (increase(winnow_judge_cost_usd_total[1h]))", legend="{{judge}}"),),
                ),
                Panel(title="Tokens", queries=(rate("winnow_judge_tokens_total", "judge", "direction"),)),
                Panel(
                    title="Model call (p99)", unit="s",
                    queries=(quantile(0.99, "gen_ai_client_operation_duration_seconds", "gen_ai_provider_name", "gen_ai_request_model"),),
                ),
                Panel(
                    title="Tokens of a call (median)",
                    queries=(quantile(0.5, "gen_ai_client_token_usage", "gen_ai_request_model", "gen_ai_token_type"),),
                ),
            ),
        ),
        (
            "Drift",
            (
                Panel(title="Streams by status", stacked=True, queries=(latest("winnow_monitor_streams", "status"),)),
                Panel(title="Largest evidence (natural log)", queries=(latest("winnow_monitor_evidence_max", "family"),)),
                Panel(title="Units by fate", queries=(rate("winnow_units_total", "fate"),)),
                Panel(title="Timers overdue by", unit="s", queries=(latest("winnow_monitor_lag_seconds"),)),
                Panel(title="Fold (p99)", unit="s", queries=(quantile(0.99, "winnow_fold_seconds"),)),
                Panel(title="Runs closed", queries=(rate("winnow_runs_closed_total", "because"),)),
                Panel(title="Alerts", queries=(rate("winnow_alerts_total", "kind"),)),
                Panel(
                    title="Webhook", queries=(rate("winnow_webhook_deliveries_total", "result"), latest("winnow_webhook_waiting")),
                ),
            ),
        ),
    ),
)  # fmt: skip

ALL: Final = (FLEETS, PIPELINE, ASSURANCE)
_SOURCE: Final = {"type": "prometheus", "uid": "prometheus"}


def render(dashboard: Dashboard) -> str:
    """The JSON that Grafana loads; the same bytes for the same dashboard."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in dashboard.rows:
        panels.append({"type": "row", "title": title, "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y}, "collapsed": False, "panels": []})
        x, y = 0, y + 1
        for panel in row:
            height = HEIGHT // 2 if panel.kind == "stat" else HEIGHT
            if x + panel.width > COLUMNS:
                x, y = 0, y + height
            panels.append(_panel(panel, x, y, height))
            x += panel.width
        y += HEIGHT
    for number, one in enumerate(panels, 1):
        one["id"] = number
    value = {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.doc,
        "tags": ["winnow"],
        "timezone": "browser",
        "schemaVersion": SCHEMA_VERSION,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "panels": panels,
    }
    return json.dumps(value, indent=1) + "\n"


def _panel(panel: Panel, x: int, y: int, height: int) -> dict[str, Any]:
    """One panel of Grafana's model."""
    custom = {"fillOpacity": 20 if panel.stacked else 0, "stacking": {"mode": "normal" if panel.stacked else "none"}}
    remedies = [METRICS[name].remedy for name in METRICS if name in metrics_of(panel) and METRICS[name].remedy]
    form = "heatmap" if panel.kind == "heatmap" else "time_series"
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.doc or " ".join(remedies),
        "datasource": _SOURCE,
        "gridPos": {"h": height, "w": panel.width, "x": x, "y": y},
        "fieldConfig": {"defaults": {"unit": panel.unit, **({"custom": custom} if panel.kind == "timeseries" else {})}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + n), "datasource": _SOURCE, "expr": query.expr, "legendFormat": query.legend or "value", "format": form}
            for n, query in enumerate(panel.queries)
        ],
    }


def write(folder: Path) -> list[Path]:
    """Write all dashboards into a folder; return their paths."""
    paths = []
    for dashboard in ALL:
        path = folder / f"{dashboard.uid}.json"
        path.write_text(render(dashboard), encoding="utf-8")
        paths.append(path)
    return paths


if __name__ == "__main__":
    for written in write(Path(sys.argv[1])):
        sys.stdout.write(f"{written}\n")
