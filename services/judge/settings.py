"""What can be set about the judge."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class JudgeSettings(BaseSettings):
    """Every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(env_prefix="WINNOW_", frozen=True, extra="ignore")

    fallback_judge: str = Field(default="local", description="Judge that answers where the named one is not there or gives no answer.")
