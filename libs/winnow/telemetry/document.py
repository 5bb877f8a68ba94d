"""`docs/telemetry.md`, made from the registries: `python -m winnow.telemetry.document > docs/telemetry.md`."""

import sys

from winnow.telemetry.events import LOG_EVENTS
from winnow.telemetry.names import METRICS
from winnow.telemetry.settings import TelemetrySettings
from winnow.telemetry.spans import ATTRIBUTE_DOCS

_HEAD = """# Telemetry

Made from the registries in `winnow.telemetry` (`python -m winnow.telemetry.document > docs/telemetry.md`); a test fails when it drifts.

No metric label holds an id, a fleet, a run or any text of a caller. Logs and spans hold lengths, hashes and counts, never the content of a
summary or message; passwords, API keys and bearer tokens are masked, and an error is logged by its type and a message without values.
"""


def render() -> str:
    """The whole document."""
    lines: list[str] = [_HEAD, "## Settings", "", "| variable | default | meaning |", "| --- | --- | --- |"]
    for name, field in TelemetrySettings.model_fields.items():
        lines.append(f"| `WINNOW_{name.upper()}` | `{field.default}` | {field.description} |")
    lines += ["", "## Metrics", "", "| name | kind | labels | meaning | when it looks wrong |", "| --- | --- | --- | --- | --- |"]
    for metric in METRICS.values():
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.doc} | {metric.remedy} |")
    lines += ["", "## Log events", "", "| event | meaning |", "| --- | --- |"]
    lines += [f"| `{event}` | {doc} |" for event, doc in LOG_EVENTS.items()]
    lines += [
        "",
        "Warnings and errors of one kind are written 20 times a minute at most; the next line of the kind says in `suppressed` how many",
        "were left out.",
        "",
        "## Spans",
        "",
        "One trace spans a boundary from the candidate to the committed event: `process <topic>` hangs under the producer's span and links",
        "to the batch that it was fetched with, `send <topic>` hangs under it. Without a collector the trace parent of the caller still",
        "passes every stage. A remote judge is a span `judge <name>` with a client span `decide <model>` for each call under it.",
        "",
        "Metrics and logs leave over OTLP too where `WINNOW_OTLP_SIGNALS` says so: `winnow_boundary_seconds` is then `winnow.boundary` in",
        "seconds, `winnow_batches_total` the counter `winnow.batches`, and a log event has the name `winnow.<event>`. The metrics of the",
        "GenAI conventions have the conventions' names there, units and attributes: `gen_ai.client.operation.duration` in seconds and",
        "`gen_ai.client.token.usage` in tokens, by `gen_ai.operation.name` (`decide`), provider, model, host, and error or token type.",
        "",
        "## Evaluations",
        "",
        "With `evaluations` among the signals, each boundary that a judge was asked about is told as an event",
        "`gen_ai.evaluation.result` (an OTLP log record of that event name), under the span of its record and so in the agent's own trace:",
        "`gen_ai.evaluation.name` `source_support`, the share of its entries whose score reaches the threshold, and a label. A boundary",
        "without an answer has neither share nor label, but `error.type`. One event a boundary, none an entry: forty of them a boundary",
        "would flood a backend; they are in the view `entry_history`. `gen_ai.evaluation.explanation` is left out: explanations quote",
        "entries.",
        "",
        "## Attributes",
        "",
        "| attribute | meaning |",
        "| --- | --- |",
    ]
    lines += [f"| `{attribute.value}` | {doc} |" for attribute, doc in ATTRIBUTE_DOCS.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())
