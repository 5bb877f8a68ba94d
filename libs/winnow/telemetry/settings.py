"""What can be set about logs, metrics and traces."""

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class TelemetrySettings(BaseSettings):
    """Telemetry of one process; every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(env_prefix="WINNOW_", frozen=True, extra="ignore")

    log_format: Literal["json", "console", "auto"] = Field(
        default="auto", description="`json` for machines, `console` for people; `auto` is console on a terminal."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(default="INFO", description="Lowest level that is written.")
    otlp_endpoint: str | None = Field(
        default=None,
        description="Base URL of an OTLP/HTTP collector, for example `http://collector:4318`; unset: nothing is sent.",
    )
    otlp_sample_ratio: float = Field(
        default=1.0, ge=0, le=1, description="Share of traces that start here and are kept; a parent's choice is kept."
    )
    otlp_signals: str = Field(
        default="traces",
        pattern=r"^(traces|metrics|logs|evaluations)(,(traces|metrics|logs|evaluations))*$",
        description="What is sent there, separated by commas: `traces`; `metrics` (also at `/metrics`); `logs` (also on stderr); "
        "`evaluations` (an event `gen_ai.evaluation.result` a judged boundary, as a log record).",
    )
    otlp_metrics_every_s: float = Field(default=15.0, gt=0, le=3600, description="Seconds between two exports of the metrics.")
    otlp_timeout_s: float = Field(default=5.0, gt=0, le=60, description="Seconds that an export may take before it is given up.")

    @property
    def signals(self) -> frozenset[str]:
        """What is sent to the collector."""
        return frozenset(self.otlp_signals.split(","))
