"""What can be set about the drift monitor."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from winnow.contracts.vocabulary import Mode


class DriftMonitorSettings(BaseSettings):
    """Every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(env_prefix="WINNOW_", frozen=True, extra="ignore")

    default_mode: Mode = Field(default=Mode.ENFORCE, description="Most that a fleet seen for the first time may do.")
    default_tau: float = Field(default=0.5, ge=0, le=1, description="Threshold of a fleet seen for the first time.")
    default_judge: str = Field(default="local", min_length=1, description="Judge of a fleet seen for the first time.")
    heartbeat_interval_s: float = Field(default=5.0, gt=0, description="Seconds between heartbeats, well below the pruner's stale limit.")
