"""What can be set about the console."""

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class ConsoleSettings(BaseSettings):
    """Every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(env_prefix="WINNOW_", frozen=True, extra="ignore")

    console: bool = Field(default=True, description="Serve the console under /console.")
    console_secret: SecretStr | None = Field(
        default=None,
        min_length=32,
        description="Signs session cookies; at least 32 characters, the same for all gateways. Left out: a new one at each start,"
        " so that people sign in again, and a session is good for one gateway alone.",
    )
    console_session_h: float = Field(default=12.0, gt=0, le=168, description="Hours after which a person signs in again.")
    console_cookie_secure: bool = Field(
        default=False, description="Send session cookies over TLS only; set it where something in front of the gateway ends TLS."
    )
    console_pool_size: int = Field(
        default=2, ge=1, le=20, description="Database connections of the console, apart from the API's: a slow page holds up no agent."
    )
    console_query_timeout_s: float = Field(default=10.0, gt=0, le=120, description="Seconds that one query of a page may take.")
    console_max_streams: int = Field(default=64, ge=0, description="Pages that hear of changes at once; the others ask every 15 seconds.")
