"""Alert rules, dashboards and the containers that load them: they ask for what there is, and every alert has its page."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.__main__ import NAMES
from tests.harness import REPOSITORY
from winnow.telemetry import dashboards
from winnow.telemetry.names import METRICS

FOLDER = REPOSITORY / "docs" / "observability"
ALERTS = yaml.safe_load((FOLDER / "alerts.yml").read_text())
RULES: list[dict[str, Any]] = [rule for group in ALERTS["groups"] for rule in group["rules"]]
COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
RUNBOOK = (REPOSITORY / "docs" / "operations.md").read_text()
#: Metrics that Prometheus itself makes.
OWN = {"up"}
EXPRESSIONS = [(rule["alert"], rule["expr"]) for rule in RULES] + [
    (f"{board.title}: {panel.title}", query.expr.replace(dashboards.WINDOW, "5m"))
    for board in dashboards.ALL
    for _, row in board.rows
    for panel in row
    for query in panel.queries
]
#: Words of PromQL that are followed by labels in parentheses.
GROUPING = r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)"


def series_of(expr: str) -> dict[str, set[str]]:
    """Names of metrics in an expression, without the suffixes of histograms, and the labels that their selectors ask for."""
    found: dict[str, set[str]] = {}
    for name, selector in re.findall(r"\b((?:winnow|gen_ai_client)_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?", re.sub(GROUPING, "()", expr)):
        base = name if name in METRICS else re.sub(r"_(?:bucket|sum|count)$", "", name)
        found.setdefault(base, set()).update(re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)", selector))
    return found


@pytest.mark.parametrize(("name", "expr"), EXPRESSIONS)
def test_what_is_asked_for_is_there(name, expr):
    """Each metric is in the registry; labels that are selected or grouped by are those of the metrics."""
    series = series_of(expr)
    assert series, name
    assert set(series) <= set(METRICS) | OWN, name
    for metric, labels in series.items():
        if metric not in OWN:
            assert labels <= set(METRICS[metric].labels), (name, metric)
    of_all = set().union(*(METRICS[metric].labels for metric in series if metric not in OWN), {"le"})
    grouped = {label.strip() for part in re.findall(GROUPING, expr) for label in part.split(",") if label.strip()}
    assert grouped <= of_all, name


@pytest.mark.parametrize(("name", "expr"), EXPRESSIONS)
def test_counters_are_rated_and_histograms_read_by_their_buckets(name, expr):
    """A counter alone says how long a process has lived; a histogram's own name has no series."""
    for metric in series_of(expr):
        kind = METRICS[metric].kind if metric not in OWN else "gauge"
        if kind == "counter":
            assert re.search(rf"(?:rate|increase)\({metric}\b", expr), name
        if kind == "histogram":
            assert f"{metric}_bucket" in expr, name
        if kind == "gauge":
            assert not re.search(rf"(?:rate|increase)\({metric}\b", expr), name
    assert expr.count("(") == expr.count(")")
    assert expr.count("{") == expr.count("}")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_says_how_bad_it_is_and_where_to_read_on(rule):
    """Severity, a summary, and a section of the runbook with its name."""
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"]
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert (page, anchor) == ("docs/operations.md", rule["alert"].lower())
    assert f"\n### {rule['alert']}\n" in RUNBOOK
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    for label in re.findall(r"\$labels\.([a-z_]+)", json.dumps(rule["annotations"])):
        grouped = re.findall(GROUPING, rule["expr"])
        kept = {word.strip() for part in grouped for word in part.split(",")} if grouped else {
            one for metric in series_of(rule["expr"]) for one in (METRICS[metric].labels if metric in METRICS else ())
        } | {"instance", "part"}  # fmt: skip
        assert label in kept, f"{rule['alert']} names the label {label}, which its expression does not keep"


def test_no_section_of_the_runbook_is_of_an_alert_that_is_gone():
    """Alerts and their sections are the same."""
    assert sorted(re.findall(r"^### (Winnow[A-Za-z]+)$", RUNBOOK, re.MULTILINE)) == sorted(rule["alert"] for rule in RULES)


@pytest.mark.parametrize("board", dashboards.ALL, ids=lambda board: board.uid)
def test_a_dashboard_is_what_its_code_makes(board):
    """The file has not drifted, its panels have numbers of their own and do not lie on each other."""
    path = FOLDER / "grafana" / "dashboards" / f"{board.uid}.json"
    assert path.read_text() == dashboards.render(board), "run: python -m winnow.telemetry.dashboards docs/observability/grafana/dashboards"
    panels = json.loads(path.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= dashboards.COLUMNS
        taken |= cells
    assert all(panel["targets"] for panel in panels if panel["type"] != "row")


def test_there_is_no_dashboard_without_code():
    """Nothing in the folder is left over."""
    names = {path.name for path in (FOLDER / "grafana" / "dashboards").iterdir()}
    assert names == {f"{board.uid}.json" for board in dashboards.ALL}


def test_prometheus_finds_every_service_and_its_rules():
    """Names and port are those of the compose file; the rules are mounted where they are looked for."""
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    [job] = [job for job in config["scrape_configs"] if job["job_name"] == "winnow"]
    [names] = job["dns_sd_configs"]
    assert set(names["names"]) == set(NAMES)
    for name in NAMES:
        assert str(names["port"]) == COMPOSE["services"][name]["environment"]["WINNOW_STATUS_PORT"]
    assert config["rule_files"] == ["/etc/prometheus/alerts.yml"]


@pytest.mark.parametrize("name", ["prometheus", "grafana", "otel-collector"])
def test_whoever_looks_on_is_asked_for_and_mounts_what_exists(name):
    """Not started by default, nothing privileged, images pinned, files read-only and there."""
    service = COMPOSE["services"][name]
    assert service["profiles"] == ["observe"]
    assert re.fullmatch(r"\S+:v?\d+\.\d+\.\d+", service["image"])
    assert service["cap_drop"] == ["ALL"]
    for volume in service["volumes"]:
        source, _, rest = volume.partition(":")
        if source.startswith("."):
            assert (REPOSITORY / source).exists(), volume
            assert rest.endswith(":ro")
        else:
            assert source in COMPOSE["volumes"]


def test_the_collector_takes_all_three_signals():
    """Every pipeline is made of parts that are configured."""
    config = yaml.safe_load((FOLDER / "otel-collector.yml").read_text())
    assert set(config["service"]["pipelines"]) == {"traces", "metrics", "logs"}
    for pipeline in config["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= set(config[kind])
    assert config["receivers"]["otlp"]["protocols"]["http"]["endpoint"].endswith(":4318")


def test_the_expressions_are_promql():
    """The parser of PromQL takes them all; and it would notice a mistake."""
    parser = pytest.importorskip("promql_parser", reason="promql-parser is not installed: expressions were only looked at by their names")
    for name, expr in EXPRESSIONS:
        assert parser.parse(expr), name
    with pytest.raises(ValueError, match=r"."):
        parser.parse("sum by (x (rate(a[5m]))")


def promtool() -> str | None:
    """Prometheus's own checker, where it is installed (Debian: the package `prometheus`)."""
    return os.environ.get("WINNOW_PROMTOOL") or shutil.which("promtool")


@pytest.mark.skipif(promtool() is None, reason="promtool is not installed: rules were checked by their structure only")
def test_prometheus_itself_takes_the_rules_and_they_fire_when_they_should(tmp_path: Path):
    """`promtool check` and the scenarios in alerts.test.yml."""
    for file in ("alerts.yml", "alerts.test.yml"):
        source = FOLDER if file == "alerts.yml" else Path(__file__).parent
        shutil.copy(source / file, tmp_path / file)
    tool = promtool() or ""
    for arguments in (
        ["check", "rules", "alerts.yml"],
        ["check", "config", "--syntax-only", str(FOLDER / "prometheus.yml")],
        ["test", "rules", "alerts.test.yml"],
    ):
        done = subprocess.run([tool, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
