"""TCP ports on 127.0.0.1 that stay free for us."""

import random
import socket
from collections.abc import Iterable
from pathlib import Path

from winnow.embedded.errors import EmbeddedError

LOCALHOST = "127.0.0.1"

#: Below Linux's range of outgoing ports (32768 and up) and outside well-known services. While a server restarts, its clients keep
#: dialling its port; were that port in the outgoing range, the kernel may give a dialling client the very same number as its own,
#: which connects the client to itself and keeps the server from ever binding again.
PORT_RANGE = range(20_000, 32_000)

#: Tries before giving up. With a thousand ports in use, a hundred random picks all fail once in 10**108.
TRIES = 100


def is_free(port: int) -> bool:
    """Tell whether a server could listen on `port` now; waiting for old connections to expire does not count as in use."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCALHOST, port))
        except OSError:
            return False
        return True


def pick(*, avoid: Iterable[int] = ()) -> int:
    """Return a free port that is not in `avoid`; two pickers may meet, so whoever binds must be ready to pick again."""
    taken = set(avoid)
    # The system's own source: processes that were forked together must not draw the same numbers.
    draw = random.SystemRandom()
    for _ in range(TRIES):
        port = draw.choice(PORT_RANGE)
        if port not in taken and is_free(port):
            return port
    text = f"no free port between {PORT_RANGE.start} and {PORT_RANGE.stop}; name one, or stop what uses them"
    raise EmbeddedError(text)


def is_listened_on_by(pid: int, port: int) -> bool:
    """Tell whether process `pid` itself listens on `port`; always true where there is no /proc to say so.

    Two servers that were started at the same time may have drawn one port; the loser, about to end, would otherwise take the
    winner's answers for its own.
    """
    tables = [table for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if table.exists()]
    if not tables:
        return True
    sockets = {f"socket:[{line.split()[9]}]" for table in tables for line in table.read_text().splitlines()[1:] if _listens(line, port)}
    for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            if str(descriptor.readlink()) in sockets:
                return True
        except OSError:
            continue  # closed since it was listed
    return False


def _listens(line: str, port: int) -> bool:
    """Read a line of the kernel's table: number, local address, remote address, state (0A: listening), and more."""
    _, local, _, state, *_ = line.split()
    return state == "0A" and int(local.rpartition(":")[2], 16) == port


def remembered(file: Path, *, avoid: Iterable[int] = ()) -> int:
    """Return the port that `file` remembers if it is free, else a new one; clients find a restarted server where it was."""
    try:
        port = int(file.read_text())
    except (FileNotFoundError, ValueError):
        port = 0
    if not 0 < port < 2**16 or port in set(avoid) or not is_free(port):
        port = pick(avoid=avoid)
        file.write_text(f"{port}\n")
    return port
