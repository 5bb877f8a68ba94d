"""TLS and sign-in to Kafka and PostgreSQL and of the gateway: what is let in, what is not, and what is said then."""

import asyncio
import base64
import secrets
import ssl
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TopicAuthorizationFailedError
from aiokafka.protocol.admin import CreateAclsRequest
from sqlalchemy.exc import DBAPIError

from services.gateway.server import TlsFiles as GatewayTlsFiles
from services.gateway.server import WebServer, tls_context
from tests.harness import Spawner, eventually
from tests.integration.security.conftest import PASSWORD, USER
from tests.unit.client.answers import candidate
from winnow.client import HttpTransport, WinnowClient
from winnow.client.kafka import KafkaTransport
from winnow.contracts.topics import CANDIDATE
from winnow.contracts.vocabulary import Adopted
from winnow.messaging.lag import LagReader
from winnow.messaging.reach import BrokerHangsUp, BrokerRefuses, diagnosis, told
from winnow.messaging.settings import KafkaSettings, TlsFiles
from winnow.storage import api_keys, fleets, migrate, raw
from winnow.storage.database import Database
from winnow.storage.faults import Untrusted, untrusted

#: A secret in summaries, headers and bodies.
PLANTED = f"planted-{secrets.token_hex(12)}"
#: Kafka's numbers: a topic, names that begin so, every operation, allowed.
TOPIC, PREFIXED, ALL, ALLOW = 2, 4, 2, 3
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


async def test_every_protocol_and_mechanism_is_let_in(secured_kafka):
    """With the right certificate, user and password nothing is wrong, by TLS and without, by PLAIN and by both kinds of SCRAM."""
    assert await diagnosis(secured_kafka.settings("SSL")) is None
    for protocol in ("SASL_SSL", "SASL_PLAINTEXT"):
        for mechanism in MECHANISMS:
            settings = secured_kafka.settings(protocol, kafka_sasl_mechanism=mechanism)
            assert await diagnosis(settings) is None, (protocol, mechanism)
            async with LagReader(settings) as reader:
                assert await reader.read() == []


async def test_a_broker_that_is_not_the_one_is_refused(secured_kafka):
    """Another authority, no authority, and a name that the certificate does not bear are each said, with the setting that mends it."""
    port = secured_kafka.ports["SSL"]
    wrong = [
        {"kafka_ssl_cafile": str(secured_kafka.stranger.file)},
        {"kafka_ssl_cafile": None},
        {"kafka_bootstrap_servers": f"localhost:{port}"},
    ]
    for changes in wrong:
        found = await diagnosis(secured_kafka.settings("SSL", **changes))
        assert isinstance(found, BrokerRefuses), changes
        assert "certificate that is not trusted" in str(found)
        assert "WINNOW_KAFKA_SSL_CAFILE" in str(found)


async def test_a_wrong_sign_in_is_said_without_the_password(secured_kafka):
    """A wrong password, an unknown user and a mechanism that is not there are refusals; the password is in none of the texts."""
    for mechanism in MECHANISMS:
        wrong = secured_kafka.settings("SASL_SSL", kafka_sasl_mechanism=mechanism, kafka_sasl_password=f"{PASSWORD}-wrong")
        found = await diagnosis(wrong)
        assert isinstance(found, BrokerRefuses)
        assert f"refuses the user '{USER}' by {mechanism}" in str(found)
        stranger = await diagnosis(secured_kafka.settings("SASL_SSL", kafka_sasl_mechanism=mechanism, kafka_sasl_username="mallory"))
        assert "refuses the user 'mallory'" in str(stranger)
        for said in (found, stranger, wrong):
            assert PASSWORD not in f"{said} {said!r}"


async def test_the_wrong_protocol_is_told_from_a_wrong_password(secured_kafka):
    """Plain words to a TLS listener, TLS to a plain one, no sign-in where one is wanted: each ends with a hint at the protocol."""
    plain = secured_kafka.broker.bootstrap
    cases = [
        KafkaSettings(kafka_bootstrap_servers=f"127.0.0.1:{secured_kafka.ports['SSL']}"),
        secured_kafka.settings("SSL", kafka_bootstrap_servers=plain),
        secured_kafka.settings("SSL", kafka_bootstrap_servers=f"127.0.0.1:{secured_kafka.ports['SASL_SSL']}"),
    ]
    for settings in cases:
        found = await diagnosis(settings)
        assert isinstance(found, BrokerHangsUp), settings.kafka_security_protocol
        assert "WINNOW_KAFKA_SECURITY_PROTOCOL" in str(found)
    found = await diagnosis(secured_kafka.settings("SASL_PLAINTEXT", kafka_bootstrap_servers=plain))
    assert isinstance(found, BrokerRefuses)
    assert "does not speak SASL_PLAINTEXT" in str(found)


async def test_the_broker_keeps_tenants_apart_by_prefix(secured_kafka):
    """With a prefix and a rule for each tenant, another's principal neither writes nor reads there: the line that Winnow does not draw."""
    admin = AIOKafkaAdminClient(bootstrap_servers=secured_kafka.broker.bootstrap)
    await admin.start()
    name = "rival." + CANDIDATE.name
    try:
        await admin.create_topics([NewTopic(name, 1, 1)])
        answer = await admin._send_request(CreateAclsRequest(TOPIC, "rival.", PREFIXED, "User:bob", "*", ALL, ALLOW))
        assert [code for code, *_ in answer.creation_responses] == [0]
    finally:
        await admin.close()
    options = secured_kafka.settings("SASL_SSL").client_options()
    async with AIOKafkaProducer(**options) as producer:
        with pytest.raises(TopicAuthorizationFailedError):
            await producer.send_and_wait(name, b"forged", key=b"rival/r")
    for group in (None, "rival.winnow.retriever.boundary.candidate.v1"):
        reader = AIOKafkaConsumer(name, group_id=group, **options)
        try:
            with pytest.raises(TopicAuthorizationFailedError):
                await asyncio.wait_for(reader.start(), 20)
        finally:
            await reader.stop()


async def test_nobody_there_is_not_a_refusal():
    """Where nothing listens there is nothing to mend but to wait: the client's own error stays."""
    nobody = KafkaSettings(kafka_bootstrap_servers="127.0.0.1:1,127.0.0.1:2")
    error = ConnectionRefusedError()
    assert await diagnosis(nobody) is None
    assert await told(nobody, error) is error


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_all_of_winnow_over_tls(secured_kafka, secured_postgres, authority, tmp_path, winnow):
    """Services, SDK over Kafka and over HTTPS, and commands: a boundary goes through servers that take nothing but TLS with a sign-in."""
    dsn = f"{secured_postgres.dsn()}?sslmode=verify-full&sslrootcert={authority.file}"
    migrate.upgrade(dsn)
    async with Database(dsn) as database, database.transaction() as tx:
        now = datetime.now(UTC)
        await fleets.ensure(tx, ["acme"], default=fleets.Point(), now=now)
        key, _ = await api_keys.create(tx, "acme", name="t", by="t", now=now)
    pair = authority.sign("gateway", "127.0.0.1")
    environment = secured_kafka.environment("SASL_SSL", "SCRAM-SHA-512") | {
        "WINNOW_DATABASE_URL": dsn,
        "WINNOW_TOPIC_PREFIX": "tls.",
        "WINNOW_PARTITIONS": "1",
        "WINNOW_STATUS_PORT": "0",
        "WINNOW_GATEWAY_PORT": "0",
        "WINNOW_GATEWAY_TLS_CERTFILE": str(pair.certificate),
        "WINNOW_GATEWAY_TLS_KEYFILE": str(pair.key),
    }
    spawner = Spawner(tmp_path)
    try:
        services = spawner.services("gateway", "retriever", "judge", "pruner", env=environment)
        await eventually(lambda: "status_port" in services.output or not services.alive, 120)
        url = next(word for word in services.output.replace('"', " ").split() if word.startswith("https://127.0.0.1:")).removeprefix("url=")
        trusting = ssl.create_default_context(cafile=authority.file)
        async with httpx.AsyncClient(verify=trusting) as http, WinnowClient(HttpTransport(url, key, client=http), fleet="acme") as client:
            over_http = await client.compact(candidate(f"- over https with {PLANTED}", fleet="acme", run="https"), deadline_s=60)
        assert over_http.source is Adopted.COMMITTED
        options = {
            "security_protocol": "SASL_SSL", "ssl_context": trusting, "sasl_mechanism": "PLAIN", "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
        }  # fmt: skip
        servers = environment["WINNOW_KAFKA_BOOTSTRAP_SERVERS"]
        async with WinnowClient(KafkaTransport(servers, topic_prefix="tls.", options=options), fleet="acme") as client:
            over_kafka = await client.compact(candidate("- over kafka", fleet="acme", run="kafka"), deadline_s=60)
        assert over_kafka.source is Adopted.COMMITTED
        async with httpx.AsyncClient() as http:
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await http.get(f"{url}/readyz")
        for arguments in (["topics", "ensure"], ["lag"], ["keys", "list"], ["runs"]):
            said = winnow(*arguments, **environment, WINNOW_GATEWAY_URL=url, WINNOW_API_KEY=key, SSL_CERT_FILE=str(authority.file))
            assert said.status == 0, (arguments, said.text)
        (letter,) = await _buried(secured_kafka.settings("SASL_SSL"), dsn)
        assert {name: base64.b64decode(value) for name, value in letter["headers"]} == {"authorization": b"***", "note": b"key wnw_***"}
        for secret in (PASSWORD, secured_postgres.password, key, PLANTED):
            assert secret not in services.output
            assert secret not in letter["error"]
    finally:
        spawner.stop()


async def _buried(settings: KafkaSettings, dsn: str) -> list[dict[str, Any]]:
    """The dead letter of a record that nobody can read, with secrets in its headers and in its body."""
    async with AIOKafkaProducer(**settings.client_options()) as producer:
        headers = [("authorization", f"Bearer {PLANTED}".encode()), ("note", f"key wnw_{PLANTED}".encode())]
        body = f'{{"api_key": "{PLANTED}", not json'.encode()
        await producer.send_and_wait("tls." + CANDIDATE.name, body, key=b"acme/r", headers=headers)
    async with Database(dsn) as database:

        async def look() -> list[dict[str, Any]]:
            async with database.transaction() as tx:
                return [dict(row) for row in await raw.fetch(tx, "SELECT headers, error FROM dead_letters")]

        return await eventually(look)


@pytest.mark.long
def test_services_and_commands_say_why_they_are_not_let_in(secured_kafka, tmp_path, winnow):
    """A wrong password ends the start at once, and a command too, with a text that says what to mend and does not hold it."""
    wrong = secured_kafka.environment("SASL_SSL", password=f"{PASSWORD}-wrong")
    spawner = Spawner(tmp_path)
    try:
        services = spawner.services("retriever", env=wrong | {"WINNOW_STATUS_PORT": "0"})
        assert services.wait(50) == 1
        assert f"refuses the user '{USER}' by SCRAM-SHA-512" in services.output.replace('\\"', "'")
        assert PASSWORD not in services.output
    finally:
        spawner.stop()
    said = winnow("topics", "ensure", **wrong)
    assert (said.status, "refuses the user" in said.text) == (1, True), said.text
    assert PASSWORD not in said.text
    said = winnow("topics", "ensure", **wrong | {"WINNOW_KAFKA_SSL_CAFILE": "/nowhere/ca.pem"})
    assert "WINNOW_KAFKA_SSL_CAFILE is not a file of CA certificates" in said.text


async def test_postgres_is_who_it_says(secured_postgres, authority, stranger):
    """The right authority is taken, a wrong one and a wrong name are refused with what to do; without TLS the server refuses."""
    dsn = secured_postgres.dsn("postgres")
    async with Database(f"{dsn}?sslmode=verify-full&sslrootcert={authority.file}") as database:
        await database.ping()
        async with database.transaction() as tx:
            used = await tx.exec_driver_sql("SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
            assert tuple(used.one()) in {(True, "TLSv1.3"), (True, "TLSv1.2")}
    wrong = [f"{dsn}?sslmode={mode}&sslrootcert={stranger.file}" for mode in ("verify-ca", "verify-full")]
    wrong.append(f"{dsn.replace('127.0.0.1', 'localhost')}?sslmode=verify-full&sslrootcert={authority.file}")
    for url in wrong:
        async with Database(url) as database:
            with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED") as refused:
                await database.ping()
            found = untrusted(refused.value)
            assert isinstance(found, Untrusted)
            assert "sslrootcert" in str(found)
            assert secured_postgres.password not in str(found)
    async with Database(f"{dsn}?sslmode=disable") as database:
        with pytest.raises(DBAPIError, match="no encryption"):
            await database.ping()


def test_commands_say_what_is_wrong_with_the_database(secured_postgres, stranger, authority, winnow):
    """A wrong authority, a wrong password and a missing file are told apart; no text holds a password."""
    good = f"{secured_postgres.dsn('postgres')}?sslmode=verify-full&sslrootcert={authority.file}"
    cases = {
        good.replace(str(authority.file), str(stranger.file)): "TLS is not accepted",
        good.replace(secured_postgres.password, "no-such-password"): "password authentication failed",
        good.replace(str(authority.file), "/nowhere"): "names a file that is not there",
    }
    for url, why in cases.items():
        said = winnow("keys", "list", WINNOW_DATABASE_URL=url)
        assert (said.status, why in said.text) == (1, True), said.text
        assert secured_postgres.password not in said.text
        assert "no-such-password" not in said.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"kafka_sasl_username": "a", "kafka_sasl_password": "b"},
        {"kafka_ssl_cafile": "ca.pem"},
        {"kafka_security_protocol": "SASL_SSL"},
        {"kafka_security_protocol": "SSL", "kafka_ssl_keyfile": "key.pem"},
    ],
)
def test_settings_that_would_not_be_used_are_refused(wrong):
    """Credentials without the protocol that uses them are an error: else they would be left out, and all would go in the clear."""
    with pytest.raises(ValueError, match="WINNOW_KAFKA_S"):
        KafkaSettings(**wrong)


def test_files_that_are_no_certificates(tmp_path, authority):
    """A missing file, a file of other content and a key of another certificate are told by the setting that names them."""
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("very private content")
    one, two = authority.sign("one"), authority.sign("two")
    for changes in ({"kafka_ssl_cafile": "/nowhere"}, {"kafka_ssl_cafile": str(nonsense)}):
        with pytest.raises(TlsFiles, match="WINNOW_KAFKA_SSL_CAFILE"):
            KafkaSettings(kafka_security_protocol="SSL", **changes).client_options()
    for certificate, key in ((nonsense, one.key), (one.certificate, two.key), (one.certificate, "/nowhere")):
        changes = {"kafka_ssl_certfile": str(certificate), "kafka_ssl_keyfile": str(key)}
        with pytest.raises(TlsFiles, match="WINNOW_KAFKA_SSL_CERTFILE") as refused:
            KafkaSettings(kafka_security_protocol="SSL", **changes).client_options()
        assert "very private content" not in str(refused.value)
        with pytest.raises(GatewayTlsFiles, match="WINNOW_GATEWAY_TLS_CERTFILE"):
            tls_context(str(certificate), str(key), "")


async def test_the_web_server_speaks_https_alone(authority):
    """With a certificate, who trusts its authority is served, who does not goes away, and plain HTTP gets no answer."""

    async def hello(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["scheme"].encode()})

    pair = authority.sign("web", "127.0.0.1")
    server = WebServer(hello, host="127.0.0.1", port=0, keepalive_s=5, drain_s=1, tls=tls_context(str(pair.certificate), str(pair.key), ""))
    await server.start()
    try:
        async with httpx.AsyncClient(verify=ssl.create_default_context(cafile=authority.file)) as http:
            assert (await http.get(server.url)).text == "https"
        async with httpx.AsyncClient() as http:
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await http.get(server.url)
            with pytest.raises(httpx.TransportError):
                await http.get(server.url.replace("https", "http"))
    finally:
        await server.stop()
