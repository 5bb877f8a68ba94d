"""What can be set about the pruner."""

from datetime import timedelta

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class PrunerSettings(BaseSettings):
    """Every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(env_prefix="WINNOW_", frozen=True, extra="ignore")

    monitor_stale_after_s: float = Field(
        default=60.0, gt=0, description="Age of the drift monitor's heartbeat that holds fleets with `hold_if_monitor_stale`."
    )

    @property
    def monitor_stale_after(self) -> timedelta:
        """The same as a time span."""
        return timedelta(seconds=self.monitor_stale_after_s)
