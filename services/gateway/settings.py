"""What can be set about the gateway."""

from typing import Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class GatewaySettings(BaseSettings):
    """Every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(env_prefix="WINNOW_", frozen=True, extra="ignore")

    gateway_host: str = Field(
        default="127.0.0.1", description="Address to listen on; set 0.0.0.0 only with TLS here, or behind something that ends it."
    )
    gateway_port: int = Field(default=8484, ge=0, le=65535, description="Port to listen on; 0 takes a free one, which the log names.")
    gateway_tls_certfile: str = Field(
        default="",
        description="PEM file of the certificate and those between it and the CA; set, the gateway speaks HTTPS and nothing else.",
    )
    gateway_tls_keyfile: str = Field(default="", description="PEM file of its key; left out, it is in the certificate's file.")
    gateway_tls_key_password: SecretStr | None = Field(default=None, description="Password of that key, where it has one.")
    gateway_pool_size: int = Field(default=8, ge=1, le=100, description="Database connections of the gateway, besides one that listens.")
    gateway_wait_cap_ms: int = Field(default=60_000, ge=0, le=600_000, description="Milliseconds that a request may wait for a result.")
    gateway_lag_limit: int = Field(
        default=5_000, ge=1, description="Boundaries that may wait for the pipeline before new ones are answered 429."
    )
    gateway_retry_after_s: int = Field(default=5, ge=1, le=3600, description="Seconds that an overloaded gateway asks clients to wait.")
    gateway_max_requests: int = Field(default=512, ge=1, description="Requests at once; beyond it the answer is 503.")
    gateway_max_waiting: int = Field(
        default=384, ge=0, description="Requests that wait for a result at once; beyond it the answer comes without waiting."
    )
    gateway_body_budget_mib: int = Field(default=256, ge=80, description="MiB of request bodies in memory at once; beyond it 503.")
    gateway_body_timeout_s: float = Field(default=30.0, gt=0, description="Seconds that a request body may take to arrive.")
    gateway_keepalive_s: int = Field(default=30, ge=1, description="Seconds that an idle connection is kept.")
    gateway_drain_s: float = Field(
        default=15.0, gt=0, description="Seconds that running requests may take at shutdown; below WINNOW_GRACEFUL_TIMEOUT_S."
    )
    gateway_key_cache_s: float = Field(
        default=10.0, ge=0, le=300, description="Seconds that a verified API key is remembered: a revoked key works that much longer."
    )
    gateway_rate_per_s: float = Field(
        default=1_000.0, ge=0, description="Requests a second of one API key, in the long run, of this process; beyond it 429. 0: no limit."
    )
    gateway_rate_burst: int = Field(default=2_000, ge=1, description="Requests that an API key may send at once after a quiet time.")
    gateway_auth_failures_per_minute: int = Field(
        default=120, ge=0, description="Requests a minute without a key that works, of one address; beyond it 429. 0: no limit."
    )
    gateway_upload_ttl_h: int = Field(
        default=168,
        ge=1,
        description="Hours that an uploaded original can be claimed; what a boundary refers to stays as long as the boundary.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """A key without a certificate would mean plain HTTP, which is not what was meant."""
        if self.gateway_tls_keyfile and not self.gateway_tls_certfile:
            msg = "WINNOW_GATEWAY_TLS_KEYFILE needs WINNOW_GATEWAY_TLS_CERTFILE"
            raise ValueError(msg)
        return self
