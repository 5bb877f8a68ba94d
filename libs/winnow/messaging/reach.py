"""Why a broker cannot be reached. The client library tries every address and says of all failures the same: unable to bootstrap."""

import asyncio
import ssl

from aiokafka.conn import create_conn
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
)
from aiokafka.protocol.metadata import MetadataRequest

from winnow.contracts.errors import Permanent, Retryable, WinnowError
from winnow.messaging.rights import refused
from winnow.messaging.settings import KafkaSettings

#: Milliseconds that one broker may take to answer. It is asked after a failure, so it answers soon or not at all.
ASK_MS = 5_000
#: Kafka's port where an address names none.
PORT = 9092


class BrokerRefuses(Permanent):
    """The broker does not let this process in; mend the security settings, then start again."""


class BrokerHangsUp(Retryable):
    """The broker ends the connection; see whether the security protocol is that of its listener."""


async def diagnosis(settings: KafkaSettings) -> WinnowError | None:
    """What keeps these settings from being let in by the brokers that they name; None: nothing, or none of them listens.

    `BrokerRefuses` where waiting mends nothing (certificate, user, password, mechanism), `BrokerHangsUp` where the broker may also just be
    starting or stopping. Never quotes a password. Raise `TlsFiles`.
    """
    options = settings.client_options()
    del options["bootstrap_servers"], options["request_timeout_ms"]
    for server in settings.servers:
        host, _, port = server.rpartition(":")
        address = (host.strip("[]"), int(port)) if port.isdigit() else (server, PORT)
        try:
            async with asyncio.timeout(ASK_MS / 1000):
                connection = await create_conn(*address, client_id="winnow-reach", request_timeout_ms=ASK_MS, **options)
                try:
                    await connection.send(MetadataRequest([]))  # a listener that wants a sign-in first hangs up here
                finally:
                    connection.close()
        except ConnectionRefusedError:
            continue
        except (OSError, KafkaError, TimeoutError) as error:
            if (found := _explained(error, server, settings)) is not None:
                return found
        else:
            return None
    return None


async def told(settings: KafkaSettings, error: Exception) -> Exception:
    """What is behind `error`, the failure of a client with these settings, where more can be said than that; else `error` itself."""
    if (found := refused(error, settings)) is not None:
        return found
    try:
        return await diagnosis(settings) or error
    except WinnowError as exc:
        return exc


def _explained(error: Exception, server: str, settings: KafkaSettings) -> WinnowError | None:
    """What happened and what to do; None for what passes by itself."""
    protocol, mechanism = settings.kafka_security_protocol, settings.kafka_sasl_mechanism
    match error:
        case ssl.SSLCertVerificationError():
            said = (
                f"shows a certificate that is not trusted ({error.verify_message}); set WINNOW_KAFKA_SSL_CAFILE to the file of its CA, and"
                " connect by a name that the certificate bears"
            )
        case ssl.SSLError():
            said = (
                f"does not agree on TLS ({error.reason or 'no reason given'}); see whether its listener speaks TLS, and"
                " WINNOW_KAFKA_SECURITY_PROTOCOL, _SSL_CERTFILE and _SSL_KEYFILE"
            )
        case SaslAuthenticationFailed():
            said = (
                f"refuses the user {settings.kafka_sasl_username!r} by {mechanism}; see WINNOW_KAFKA_SASL_USERNAME, _SASL_PASSWORD and"
                " _SASL_MECHANISM"
            )
        case UnsupportedSaslMechanismError():
            said = f"does not take {mechanism}; set WINNOW_KAFKA_SASL_MECHANISM to one that it has"
        case IllegalSaslStateError() | UnsupportedVersionError():
            said = f"does not speak {protocol} on this port; see WINNOW_KAFKA_SECURITY_PROTOCOL"
        case KafkaConnectionError() | ConnectionError():
            said = f"ends the connection at once; see whether its listener speaks {protocol} (WINNOW_KAFKA_SECURITY_PROTOCOL), or starts"
            return BrokerHangsUp(f"the broker at {server} {said}")
        case _:
            return None
    return BrokerRefuses(f"the broker at {server} {said}")
