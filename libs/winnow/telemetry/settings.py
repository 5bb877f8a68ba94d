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
        description="Base URL of an OTLP/HTTP collector, for example `http://collector:4318`; unset: no traces leave the process.",
    )
    otlp_sample_ratio: float = Field(
        default=1.0, ge=0, le=1, description="Share of traces that start here and are kept; a parent's choice is kept."
    )
    otlp_timeout_s: float = Field(default=5.0, gt=0, le=60, description="Seconds that an export may take before it is given up.")
