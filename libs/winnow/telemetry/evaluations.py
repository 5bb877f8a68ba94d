"""What a judge said of a boundary, as OpenTelemetry's event `gen_ai.evaluation.result`: one a boundary, sent as a log record over OTLP.

Backends that know the GenAI conventions show it beside the spans of the agent whose summary it is. It holds a share and counts, never a
text: explanations of entries quote them, and stay in the database. Spans' own events are deprecated for such, so it goes the way of logs.
"""

import time
from collections.abc import Mapping

from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.util.types import AttributeValue

from winnow.telemetry.settings import TelemetrySettings
from winnow.telemetry.spans import Attr
from winnow.telemetry.traces import package_version, resource, safe

#: Name of the event, by the conventions.
EVENT = "gen_ai.evaluation.result"
#: What is evaluated: whether the entries of a summary have a source.
SOURCE_SUPPORT = "source_support"


class Evaluations:
    """Tells of evaluations; without an exporter nothing is made."""

    def __init__(self, logger: Logger | None = None, provider: LoggerProvider | None = None) -> None:
        self._logger = logger
        self._provider = provider

    def __repr__(self) -> str:
        return f"<Evaluations(exporting={self.recording})>"

    @property
    def recording(self) -> bool:
        """Events are sent; callers need not prepare one otherwise."""
        return self._logger is not None

    def tell(self, context: Context | None, *, supported: int, scored: int, more: Mapping[Attr, AttributeValue | None]) -> None:
        """One boundary, under the span of `context`: `supported` of its `scored` entries reach the threshold.

        Without a scored entry the event has neither score nor label; `more` then says why (`Attr.ERROR_TYPE`). None in it is left out.
        """
        if self._logger is None:
            return
        attributes: dict[str, AttributeValue] = {Attr.EVALUATION_NAME.value: SOURCE_SUPPORT}
        if scored:
            attributes[Attr.EVALUATION_SCORE.value] = supported / scored
            attributes[Attr.EVALUATION_LABEL.value] = label(supported, scored)
        attributes |= safe(more)
        now = time.time_ns()
        self._logger.emit(
            timestamp=now,
            observed_timestamp=now,
            context=Context() if context is None else context,
            severity_number=SeverityNumber.INFO,
            attributes=attributes,
            event_name=EVENT,
        )

    def close(self) -> None:
        """Send what is queued and end; blocks for at most the exporter's time-out."""
        if self._provider is not None:
            self._provider.shutdown()


def label(supported: int, scored: int) -> str:
    """The score in a word."""
    if supported == scored:
        return "supported"
    return "mixed" if supported else "unsupported"


def open_evaluations(settings: TelemetrySettings, service: str, exporter: LogRecordExporter | None = None) -> Evaluations:
    """Evaluations of a service as set: sent where there is an endpoint (or an exporter) and the signal is wanted."""
    if exporter is None:
        if settings.otlp_endpoint is None or "evaluations" not in settings.signals:
            return Evaluations()
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter  # noqa: PLC0415  slow, and most have no collector

        exporter = OTLPLogExporter(endpoint=settings.otlp_endpoint.rstrip("/") + "/v1/logs", timeout=settings.otlp_timeout_s)
    provider = LoggerProvider(resource=resource(service), shutdown_on_exit=False)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    return Evaluations(provider.get_logger("winnow", package_version()), provider)
