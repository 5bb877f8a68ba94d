"""Logs, metrics and traces of a service, handed over as one value."""

import logging
from dataclasses import dataclass, field

from winnow.telemetry.evaluations import Evaluations, open_evaluations
from winnow.telemetry.logs import Log
from winnow.telemetry.metrics import Metrics
from winnow.telemetry.settings import TelemetrySettings
from winnow.telemetry.traces import Traces, open_traces, package_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """What a service reports with. Services of one process share `metrics`."""

    service: str
    log: Log
    metrics: Metrics
    traces: Traces
    evaluations: Evaluations = field(default_factory=Evaluations)

    @classmethod
    def open(cls, service: str, settings: TelemetrySettings, metrics: Metrics | None = None) -> "Telemetry":
        """Telemetry of `service` as set; `close` it at the end. Log handlers are installed by `logs.install`, once a process."""
        made = metrics or Metrics()
        made.set("winnow_build_info", 1, version=package_version())
        return cls(
            service=service,
            log=Log(logging.getLogger(f"winnow.{service}"), {"service": service}),
            metrics=made,
            traces=open_traces(settings, service),
            evaluations=open_evaluations(settings, service),
        )

    @classmethod
    def plain(cls, service: str = "test", traces: Traces | None = None) -> "Telemetry":
        """Telemetry that exports nothing, with metrics of its own: for tests and offline tools."""
        return cls(
            service=service,
            log=Log(logging.getLogger(f"winnow.{service}"), {"service": service}),
            metrics=Metrics(),
            traces=traces or Traces(),
        )

    def close(self) -> None:
        """Flush traces and evaluations; blocks for at most the exporters' time-outs."""
        self.traces.close()
        self.evaluations.close()
