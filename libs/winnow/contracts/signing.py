"""The signature of a webhook's body: how it is made, and how whoever gets it finds out that it is genuine."""

import hashlib
import hmac
from collections.abc import Sequence

#: Seconds that a delivery may be old, or ahead of the receiver's clock: after them a body that was overheard is of no use.
TOLERANCE_S = 300
#: Digits of a Unix time, far beyond any; more are refused unread.
_MOST_DIGITS = 12


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """`v1=` and HMAC-SHA256 (RFC 2104) in hexadecimal over timestamp, a dot, and the body."""
    return "v1=" + hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()


def genuine(
    secrets: str | Sequence[str], *, signed: str, timestamp: str, body: bytes, now: float, tolerance_s: float = TOLERANCE_S
) -> bool:
    """Whether a delivery comes from who knows one of `secrets`, and is not an old one sent again.

    Args:
        secrets: The secret, or the new and the old one while they are exchanged.
        signed: The header `Winnow-Signature`.
        timestamp: The header `Winnow-Timestamp`.
        body: The body, byte for byte as it arrived.
        now: The receiver's Unix time in seconds.
        tolerance_s: How many seconds apart the two times may be.

    Compares in constant time. Never raises for what a sender made up.
    """
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _MOST_DIGITS):
        return False
    at = int(timestamp)
    if abs(now - at) > tolerance_s:
        return False
    given = signed.encode("utf-8", "surrogatepass")
    known = [secrets] if isinstance(secrets, str) else secrets
    fits = [hmac.compare_digest(signature(secret, at, body).encode(), given) for secret in known]
    return any(fits)  # all were compared, so that the time tells nothing of which one fits
