"""Is a Kafka broker ready? Asked over a bare socket: `start()` is synchronous and may be called beside a running event loop."""

import socket
import struct

from winnow.embedded.ports import LOCALHOST

#: Kafka protocol: Metadata request. Version 4 is the newest that every broker here knows and that has no tagged fields.
METADATA, METADATA_VERSION = 3, 4

#: Seconds for one question to a broker on this machine.
ASK_TIMEOUT_S = 2.0

CORRELATION_ID = 1


def broker_is_ready(port: int) -> bool:
    """Tell whether the broker on `port` answers and counts itself among the live brokers.

    A listening socket is not enough: Kafka binds it a second before it serves, and is fenced for a while after that.
    """
    client = b"winnow-probe"
    # No topics asked for, none to be created.
    header = struct.pack(">hhih", METADATA, METADATA_VERSION, CORRELATION_ID, len(client)) + client
    request = header + struct.pack(">ib", 0, 0)
    try:
        with socket.create_connection((LOCALHOST, port), timeout=ASK_TIMEOUT_S) as connection:
            if connection.getsockname() == connection.getpeername():
                return False  # connected to ourselves; see PORT_RANGE
            connection.sendall(struct.pack(">i", len(request)) + request)
            # Size, correlation id, throttle time, number of brokers.
            answer = _read(connection, 16)
    except OSError:
        return False
    if len(answer) < 16:  # noqa: PLR2004 - four 32-bit numbers
        return False
    _, correlation, _, brokers = struct.unpack(">iiii", answer)
    return bool(correlation == CORRELATION_ID and brokers > 0)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (chunk := connection.recv(size - len(data))):
        data += chunk
    return data
