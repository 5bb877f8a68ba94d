"""What can be set about the process that runs services."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class ProcessSettings(BaseSettings):
    """Every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(env_prefix="WINNOW_", frozen=True, extra="ignore")

    status_host: str = Field(default="127.0.0.1", description="Address of `/livez`, `/readyz` and `/metrics` of this process.")
    status_port: int = Field(default=8485, ge=0, le=65535, description="Their port; 0 takes a free one, which the log names.")
    topics_create: bool = Field(default=True, description="Create missing topics at start; false: only check them against the registry.")
    drain_delay_s: float = Field(
        default=0.0,
        ge=0,
        le=300,
        description="Seconds from the stop signal, at which `/readyz` turns red, to the end of intake: a load balancer must notice.",
    )
