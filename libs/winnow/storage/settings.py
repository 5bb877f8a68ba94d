"""What can be set about the database."""

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class DatabaseSettings(BaseSettings):
    """The database of one process; every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(env_prefix="WINNOW_", frozen=True, extra="ignore")

    database_url: SecretStr = Field(
        default=SecretStr("postgresql+asyncpg://winnow@127.0.0.1:5432/winnow"),
        description="SQLAlchemy URL of the pipeline's role, for example `postgresql+asyncpg://user:password@host:5432/winnow`.",
    )
    database_pool_size: int = Field(default=4, ge=1, le=100, description="Connections of one service.")
