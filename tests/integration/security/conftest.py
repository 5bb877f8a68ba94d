"""Servers that want TLS and a sign-in: Apache Kafka and PostgreSQL, with certificates of an authority that only the tests know."""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness.brokers import KAFKA
from tests.harness.certificates import Authority
from tests.harness.data import quick_place
from tests.harness.databases import blocking
from tests.harness.plugin import usable
from winnow.cli import app
from winnow.embedded import KafkaBroker, PostgresServer, ports
from winnow.messaging.settings import KafkaSettings

USER = "alice"
#: No secret of anybody: made for one run of the tests. It must be in no output.
PASSWORD = f"pw-{secrets.token_hex(12)}"

LISTENERS = ("SSL", "SASL_SSL", "SASL_PLAINTEXT")
JAAS = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredKafka:
    """A broker with a listener for each protocol."""

    broker: KafkaBroker
    authority: Authority
    stranger: Authority
    ports: dict[str, int]

    def settings(self, protocol: str, **changes) -> KafkaSettings:
        """Settings that are let in, but for `changes`."""
        return KafkaSettings(**{name.removeprefix("WINNOW_").lower(): v for name, v in self.environment(protocol).items()} | changes)

    def environment(self, protocol: str, mechanism: str = "SCRAM-SHA-512", password: str = PASSWORD) -> dict[str, str]:
        """The same as variables."""
        said = {"WINNOW_KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{self.ports[protocol]}", "WINNOW_KAFKA_SECURITY_PROTOCOL": protocol}
        if protocol.endswith("SSL"):
            said["WINNOW_KAFKA_SSL_CAFILE"] = str(self.authority.file)
        if protocol.startswith("SASL"):
            said |= {
                "WINNOW_KAFKA_SASL_MECHANISM": mechanism, "WINNOW_KAFKA_SASL_USERNAME": USER, "WINNOW_KAFKA_SASL_PASSWORD": password,
            }  # fmt: skip
        return said


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that servers and clients trust."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that signed nothing here."""
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture(scope="session")
def secured_kafka(
    authority: Authority, stranger: Authority, tmp_path_factory: pytest.TempPathFactory, pytestconfig
) -> Iterator[SecuredKafka]:
    """Apache Kafka with TLS listeners, and users by PLAIN and SCRAM."""
    if usable(pytestconfig).name != KAFKA:
        pytest.skip("needs Apache Kafka itself: the embedded broker has neither TLS nor users")
    folder = tmp_path_factory.mktemp("secured-kafka")
    pair = authority.sign("kafka", "127.0.0.1")
    keystore = folder / "keystore.pem"
    keystore.write_bytes(pair.key.read_bytes() + pair.certificate.read_bytes())
    at: dict[str, int] = {}
    for name in LISTENERS:
        at[name] = ports.pick(avoid=at.values())
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in at.items())
    properties = {
        "listeners": f"{{plain}},{{controller}},{listeners}",
        "advertised.listeners": f"{{plain}},{listeners}",
        "listener.security.protocol.map": ",".join(f"{n}:{n}" for n in ("PLAINTEXT", *LISTENERS)) + ",CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        # Topics without rules are open; a rule closes what it names to all others. The plain listener is the tests' own.
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        # A refused client waits that long for its answer; the tests are refused often.
        "connection.failed.authentication.delay.ms": "0",
    }
    for name in ("sasl_ssl", "sasl_plaintext"):
        plain = f'{JAAS}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        properties |= {f"listener.name.{name}.plain.sasl.jaas.config": plain} | {
            f"listener.name.{name}.{mechanism}.sasl.jaas.config": f"{JAAS}.scram.ScramLoginModule required;"
            for mechanism in ("scram-sha-256", "scram-sha-512")
        }
    scram = [f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]" for bits in (256, 512)]
    options = [word for one in scram for word in ("--add-scram", one)]
    broker = KafkaBroker(folder / "broker", properties=properties, format_options=options)
    try:
        broker.start()
        yield SecuredKafka(broker=broker, authority=authority, stranger=stranger, ports=at)
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)  # index files of 10 MB each


def postgres_with_tls() -> Path | None:
    """The programs of a PostgreSQL that was built with OpenSSL; the one of the wheel was not."""
    return max((found.parent for found in Path("/usr/lib/postgresql").glob("*/bin/postgres")), default=None)


@pytest.fixture(scope="module")
def secured_postgres(authority: Authority) -> Iterator[PostgresServer]:
    """PostgreSQL that takes TLS connections alone, with the certificate of a server called `db.example` at 127.0.0.1."""
    programs = postgres_with_tls()
    if programs is None:
        why = "needs a PostgreSQL with OpenSSL under /usr/lib/postgresql (Debian: apt-get install postgresql)"
        (pytest.fail if os.environ.get("WINNOW_REQUIRE_POSTGRES_TLS") else pytest.skip)(why)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_PG_BIN", str(programs))
        with PostgresServer(ephemeral=True, temporary_place=quick_place()) as server:
            pair = authority.sign("postgres", "127.0.0.1")
            owner = (server.directory / "data").stat()
            for source, name in ((pair.certificate, "server.crt"), (pair.key, "server.key")):
                target = server.directory / "data" / name
                target.write_bytes(source.read_bytes())
                target.chmod(0o600)
                shutil.chown(target, owner.st_uid, owner.st_gid)
            server.sql("ALTER SYSTEM SET ssl = on")
            (server.directory / "data" / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
            server.restart()
            yield server


@dataclass(frozen=True)
class Said:
    """What a command said."""

    status: int
    text: str


@pytest.fixture
def winnow(monkeypatch, capfd) -> Callable[..., Said]:
    """Runs a command of `winnow` with these variables and no others of ours."""

    def run(*arguments: str, **environment: str) -> Said:
        for name in [name for name in os.environ if name.startswith("WINNOW_")]:
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        capfd.readouterr()
        status = blocking(lambda: app.run(arguments))
        return Said(status=status, text="".join(capfd.readouterr()))

    return run
