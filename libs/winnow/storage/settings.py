"""What can be set about the database."""

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from winnow.storage.database import driver_url


class DatabaseSettings(BaseSettings):
    """The database of one process; every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(env_prefix="WINNOW_", frozen=True, extra="ignore")

    database_url: SecretStr = Field(
        default=SecretStr("postgresql+asyncpg://winnow@127.0.0.1:5432/winnow"),
        description="URL of the pipeline's role, for example `postgresql://user:password@host:5432/winnow`. TLS as in libpq:"
        " `?sslmode=verify-full&sslrootcert=/etc/winnow/ca.pem` (and `sslcert`, `sslkey`); without, TLS is used where it is offered.",
    )
    database_pool_size: int = Field(default=4, ge=1, le=100, description="Connections of one service.")

    @field_validator("database_url")
    @classmethod
    def _usable(cls, value: SecretStr) -> SecretStr:
        driver_url(value.get_secret_value())
        return value
