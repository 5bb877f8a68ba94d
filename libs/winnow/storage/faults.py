"""Which database errors pass by themselves, and which are a fault of the row."""

import ssl
from collections.abc import Iterator

import asyncpg
from sqlalchemy import exc

from winnow.contracts.errors import Permanent

#: Classes and codes of SQLSTATE that say: the same transaction may succeed later.
TRANSIENT_CLASSES = ("08", "53", "58")  # connection, insufficient resources, system error
TRANSIENT_CODES = frozenset({
    "40001",  # serialization failure
    "40P01",  # deadlock
    "55P03",  # lock not available in time
    "57014",  # cancelled: a time limit
    "57P01", "57P02", "57P03", "57P05",  # shutting down, crashed, starting up, idle session ended
    "25006",  # read only: a standby that is about to become the primary
    "25P03",  # transaction ended by the server for idling
    "26000",  # a prepared statement is unknown: a pooler gave us another connection
})  # fmt: skip
#: Classes that say: this row cannot be stored. Data exception, integrity violation, a limit of the program (index row too long).
DATA_CLASSES = ("22", "23", "54")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it stands for: SQLAlchemy's wrapper, its adapter's error, the driver's."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = getattr(at, "orig", None) or at.__cause__


class Untrusted(Permanent):
    """The database's TLS is not accepted; see `sslmode` and `sslrootcert` of WINNOW_DATABASE_URL, and the name that it connects to."""


def untrusted(error: BaseException) -> Untrusted | None:
    """What to do about a certificate that is not accepted, where that is what `error` is.

    In the middle of the work it passes like any lost connection (certificates are exchanged); at a start it does not.
    """
    for at in _chain(error):
        if isinstance(at, ssl.SSLError):
            why = getattr(at, "verify_message", None) or at.reason or "no reason given"
            return Untrusted(
                f"the database's TLS is not accepted ({why}); see sslmode and sslrootcert of WINNOW_DATABASE_URL, and that its host is a"
                " name that the certificate bears"
            )
    return None


def _passes(code: str) -> bool:
    """An SQLSTATE after which the same transaction may succeed."""
    return code.startswith(TRANSIENT_CLASSES) or code in TRANSIENT_CODES


def transient(error: BaseException) -> bool:
    """The same transaction may succeed later: connection lost, server starting or full, deadlock, serialization, time-out."""
    for at in _chain(error):
        if isinstance(at, exc.TimeoutError | exc.DisconnectionError) or (isinstance(at, exc.DBAPIError) and at.connection_invalidated):
            return True
        if isinstance(at, asyncpg.InternalClientError):  # asked between the server's last word and the end of the connection
            return "cannot switch to state" in str(at)
        if isinstance(at, asyncpg.PostgresError):
            # A cached statement is invalid after a migration changed its tables under it.
            return isinstance(at, asyncpg.InvalidCachedStatementError) or _passes(at.sqlstate or "")
        if isinstance(at, asyncpg.InterfaceError):
            # The driver could not encode a value, or we misuse it: no patience mends those.
            return not isinstance(at, asyncpg.DataError) and "clos" in str(at)
        if isinstance(at, OSError | TimeoutError | EOFError):
            return True
    return False


def silence(error: BaseException) -> str:
    """What a transient error says of the database, and what to do; for people."""
    for at in _chain(error):
        if isinstance(at, asyncpg.DiskFullError):
            return "the disk of the database is full; make room, nothing is lost and everything waits for it"
    return f"the database does not answer ({type(error).__name__}); see whether it runs, then try again"


def data_error(error: BaseException) -> bool:
    """A fault of the row itself (bad value, constraint): run the batch again record by record."""
    for at in _chain(error):
        if isinstance(at, asyncpg.PostgresError):
            return (at.sqlstate or "").startswith(DATA_CLASSES)
        if isinstance(at, asyncpg.DataError | UnicodeError):
            return True
    return False
