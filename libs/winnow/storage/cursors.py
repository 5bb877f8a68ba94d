"""Cursors of pages: where the last page ended, as an opaque text that survives a URL."""

import base64
import binascii
from datetime import UTC, datetime

from winnow.contracts.errors import Permanent

#: The most rows of a page, whatever is asked.
MOST_ROWS = 500


class BadCursor(Permanent):
    """The cursor is not one that Winnow gave out; start again without a cursor."""


def encode(moment: datetime, name: str) -> str:
    """A cursor for the row with this time and name."""
    return base64.urlsafe_b64encode(f"{moment.isoformat()}\x1f{name}".encode()).decode().rstrip("=")


def decode(cursor: str) -> tuple[datetime, str]:
    """Time and name of the last row seen. Raise `BadCursor`."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        moment, separator, name = text.partition("\x1f")
        at = datetime.fromisoformat(moment)
        at.astimezone(UTC)  # what has no year there can neither be stored nor compared
    except (ValueError, OverflowError, binascii.Error) as error:
        raise BadCursor from error
    if not separator or at.tzinfo is None or "\x00" in name:
        raise BadCursor
    return at, name


def limited(limit: int) -> int:
    """`limit` within 1 and `MOST_ROWS`."""
    return max(1, min(limit, MOST_ROWS))
