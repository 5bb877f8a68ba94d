"""Logs, metrics and traces: set-up and the typed registry of names."""

from winnow.telemetry.logs import Log
from winnow.telemetry.metrics import Metrics
from winnow.telemetry.settings import TelemetrySettings
from winnow.telemetry.spans import Attr
from winnow.telemetry.telemetry import Telemetry
from winnow.telemetry.traces import Traces

__all__ = ["Attr", "Log", "Metrics", "Telemetry", "TelemetrySettings", "Traces"]
