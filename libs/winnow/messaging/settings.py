"""What can be set about the bus."""

import ssl
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from winnow.contracts.errors import Permanent
from winnow.contracts.topics import DEFAULT_PARTITIONS


class TlsFiles(Permanent):
    """A file of the TLS settings is missing or is not what it should be; mend the setting that this text names."""


class KafkaSettings(BaseSettings):
    """Kafka of one process; every field is an environment variable with the prefix `WINNOW_`."""

    model_config = SettingsConfigDict(env_prefix="WINNOW_", frozen=True, extra="ignore")

    kafka_bootstrap_servers: str = Field(default="127.0.0.1:9092", min_length=1, description="`host:port[,host:port...]`.")
    topic_prefix: str = Field(default="", pattern=r"^[A-Za-z0-9._-]{0,100}$", description="Put before every topic name and consumer group.")
    partitions: int = Field(default=DEFAULT_PARTITIONS, ge=1, le=1000, description="Partitions of topics that are created.")
    replication_factor: int = Field(default=1, ge=1, le=10, description="Replicas of topics that are created; 3 in production.")
    idempotence: Literal["auto", "on", "off"] = Field(
        default="auto", description="Idempotent producer; `auto` asks the broker once at start (the embedded one cannot)."
    )
    compression: Literal["none", "gzip", "lz4", "snappy", "zstd"] = Field(default="zstd", description="Codec of produced batches.")
    linger_ms: int = Field(default=1, ge=0, le=1000, description="Milliseconds that a producer waits for more records.")
    batch_max_records: int = Field(
        default=100, ge=1, le=10_000, description="Records that one handler call gets at most (observations: at least 500)."
    )
    batch_max_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=64 * 1024,
        description="Bytes of record bodies that one handler call gets at most (one record may be larger).",
    )
    batch_timeout_ms: int = Field(
        default=10, ge=1, le=10_000, description="Milliseconds a poll waits for records; an empty poll sleeps it a second time."
    )
    fetch_max_bytes: int = Field(default=32 * 1024 * 1024, ge=1024 * 1024, description="Bytes of one fetch over all partitions.")
    fetch_max_wait_ms: int = Field(
        default=100,
        ge=1,
        le=30_000,
        description="Milliseconds that the broker may hold a fetch which finds nothing (the drift monitor's: four times that). "
        "Apache Kafka ends the wait when a record comes, so 500 spares work there; the embedded broker looks at its half and its end only.",
    )
    fetch_busy_wait_ms: int | None = Field(
        default=None,
        ge=1,
        le=30_000,
        description="The same while records come, and until none has come for 2 seconds; unset: WINNOW_FETCH_MAX_WAIT_MS. For brokers that "
        "do not end the wait when a record comes.",
    )
    session_timeout_ms: int = Field(default=45_000, ge=500, description="Milliseconds without a heartbeat until a consumer counts as dead.")
    heartbeat_interval_ms: int = Field(default=3_000, ge=50, description="Milliseconds between heartbeats.")
    max_poll_interval_ms: int = Field(
        default=900_000, ge=1_000, description="Milliseconds that one batch may take before its partitions are given to another consumer."
    )
    stall_s: float = Field(
        default=120.0,
        gt=0,
        le=86_400,
        description="Seconds that a partition may stand still with records before it, and no batch at work, until its consumer leaves the "
        "group and joins it again; after as many more, liveness fails. At least twice the session timeout.",
    )
    request_timeout_ms: int = Field(default=40_000, ge=1_000, description="Milliseconds that one request to the broker may take.")
    graceful_timeout_s: float = Field(default=20.0, gt=0, description="Seconds that a running batch may go on at shutdown.")
    hard_exit_s: float = Field(
        default=28.0,
        gt=0,
        description="Seconds after the stop signal and WINNOW_DRAIN_DELAY_S at which the process ends whatever still hangs.",
    )
    group_instance: str | None = Field(
        default=None, description="Static member name, for example the host name: a rolling restart then moves no partitions."
    )
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT", description="How to talk to the broker."
    )
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        default="SCRAM-SHA-512", description="SASL mechanism, where the protocol is SASL."
    )
    kafka_sasl_username: str | None = Field(default=None, description="SASL user.")
    kafka_sasl_password: SecretStr | None = Field(default=None, description="SASL password.")
    kafka_ssl_cafile: str | None = Field(default=None, description="File of CA certificates; unset: the system's.")
    kafka_ssl_certfile: str | None = Field(default=None, description="File of the client certificate.")
    kafka_ssl_keyfile: str | None = Field(default=None, description="File of the client certificate's key.")
    kafka_ssl_key_password: SecretStr | None = Field(default=None, description="Password of that key, where it has one.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Settings that contradict each other fail at start, not in the middle of a night."""
        if self.kafka_security_protocol.startswith("SASL") and (self.kafka_sasl_username is None or self.kafka_sasl_password is None):
            msg = "set WINNOW_KAFKA_SASL_USERNAME and WINNOW_KAFKA_SASL_PASSWORD, or another WINNOW_KAFKA_SECURITY_PROTOCOL"
            raise ValueError(msg)
        if not self.kafka_security_protocol.startswith("SASL") and (self.kafka_sasl_username or self.kafka_sasl_password):
            msg = "WINNOW_KAFKA_SASL_USERNAME and _PASSWORD are only used with WINNOW_KAFKA_SECURITY_PROTOCOL=SASL_SSL (or SASL_PLAINTEXT)"
            raise ValueError(msg)
        if not self.kafka_security_protocol.endswith("SSL") and (self.kafka_ssl_cafile or self.kafka_ssl_certfile):
            msg = "WINNOW_KAFKA_SSL_CAFILE and _CERTFILE would not be used: set WINNOW_KAFKA_SECURITY_PROTOCOL=SASL_SSL or SSL"
            raise ValueError(msg)
        if self.heartbeat_interval_ms * 2 > self.session_timeout_ms:
            msg = "WINNOW_HEARTBEAT_INTERVAL_MS must be at most half of WINNOW_SESSION_TIMEOUT_MS"
            raise ValueError(msg)
        if self.stall_s * 1000 < 2 * self.session_timeout_ms:
            msg = "WINNOW_STALL_S must be at least twice WINNOW_SESSION_TIMEOUT_MS: a member that died keeps its partitions that long"
            raise ValueError(msg)
        if self.hard_exit_s <= self.graceful_timeout_s:
            msg = "WINNOW_HARD_EXIT_S must be above WINNOW_GRACEFUL_TIMEOUT_S"
            raise ValueError(msg)
        if self.kafka_ssl_keyfile is not None and self.kafka_ssl_certfile is None:
            msg = "WINNOW_KAFKA_SSL_KEYFILE needs WINNOW_KAFKA_SSL_CERTFILE"
            raise ValueError(msg)
        return self

    @property
    def servers(self) -> list[str]:
        """The brokers to ask first, `host:port` each."""
        return [server.strip() for server in self.kafka_bootstrap_servers.split(",") if server.strip()]

    @property
    def busy_wait_ms(self) -> int:
        """Milliseconds that the broker may hold a fetch which finds nothing, while records come."""
        return self.fetch_max_wait_ms if self.fetch_busy_wait_ms is None else self.fetch_busy_wait_ms

    @property
    def batch_deadline_s(self) -> float:
        """Seconds that one batch may take, retries included: under half of the poll interval, or it runs twice."""
        return self.max_poll_interval_ms / 1000 * 0.45

    def topic_name(self, name: str) -> str:
        """The name on the broker of the topic `name`."""
        return self.topic_prefix + name

    def group(self, service: str, topic: str) -> str:
        """The consumer group of a service on the topic `topic`.

        One group a topic: members that subscribe to different topics would rebalance each other at every start.
        """
        return f"{self.topic_prefix}winnow.{service}.{topic.removeprefix('winnow.')}"

    def client_options(self) -> dict[str, Any]:
        """Connection options that every aiokafka client takes."""
        options: dict[str, Any] = {
            "bootstrap_servers": self.servers,
            "request_timeout_ms": self.request_timeout_ms,
            "security_protocol": self.kafka_security_protocol,
        }
        if self.kafka_security_protocol.endswith("SSL"):
            options["ssl_context"] = self.ssl_context()
        if self.kafka_security_protocol.startswith("SASL"):
            options |= {
                "sasl_mechanism": self.kafka_sasl_mechanism,
                "sasl_plain_username": self.kafka_sasl_username,
                "sasl_plain_password": self.kafka_sasl_password.get_secret_value() if self.kafka_sasl_password else None,
            }
        return options

    def ssl_context(self) -> ssl.SSLContext:
        """TLS 1.2 or newer as set; the broker's certificate and name are always checked. Raise `TlsFiles` where a file will not do."""
        try:
            context = ssl.create_default_context(cafile=self.kafka_ssl_cafile)
        except (OSError, ValueError) as error:
            msg = f"WINNOW_KAFKA_SSL_CAFILE is not a file of CA certificates in PEM form ({_why(error)})"
            raise TlsFiles(msg) from None
        if self.kafka_ssl_certfile is not None:
            secret = self.kafka_ssl_key_password
            # Without a password the library would ask the terminal for one, and wait.
            password = "" if secret is None else secret.get_secret_value()
            try:
                context.load_cert_chain(self.kafka_ssl_certfile, self.kafka_ssl_keyfile, password)
            except (OSError, ValueError) as error:
                msg = (
                    "WINNOW_KAFKA_SSL_CERTFILE and _SSL_KEYFILE are not a certificate and its key in PEM form, or"
                    f" WINNOW_KAFKA_SSL_KEY_PASSWORD is not the key's ({_why(error)})"
                )
                raise TlsFiles(msg) from None
        return context


def _why(error: Exception) -> str:
    """The reason of an error, without the content of any file."""
    if isinstance(error, ssl.SSLError):
        return error.reason or "not PEM"
    return getattr(error, "strerror", None) or type(error).__name__
