"""A signed POST to somebody else's server: what is sent, how it is signed, and what of the answer counts."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from winnow.contracts.signing import signature

#: Header with the Unix time in seconds at which the attempt was made; part of what is signed, so that an old body cannot be sent again.
TIMESTAMP_HEADER = "Winnow-Timestamp"
#: Header with `v1=` and the signature in hexadecimal.
SIGNATURE_HEADER = "Winnow-Signature"
#: Header with the number of the delivery, the same at every attempt.
DELIVERY_HEADER = "Winnow-Delivery"
#: Seconds of the first pause, and of the longest one.
FIRST_PAUSE_S, MOST_PAUSE_S = 5.0, 3600.0
#: Names of this machine, to which plain http may go.
_HERE = frozenset({"127.0.0.1", "::1", "localhost"})


def checked_url(url: str) -> str:
    """`url`, where alerts may be sent to it: https, or http to this machine; without a user's name. Raise `ValueError`."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = "a webhook's URL begins with https:// and names a host"
        raise ValueError(msg)
    if parts.scheme == "http" and parts.hostname not in _HERE:
        msg = "a webhook elsewhere than on this machine must be https"
        raise ValueError(msg)
    if parts.username or parts.password:
        msg = "a webhook's URL holds no user and password; the signature says who sends"
        raise ValueError(msg)
    return url


def pause_s(attempts: int, chance: float) -> float:
    """Seconds before the attempt after `attempts`: doubled each time, to an hour at most; `chance` in [0, 1) takes up to a half off."""
    return min(MOST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempts - 1, 20)) * (1.0 - 0.5 * chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How an attempt ended."""

    #: HTTP status; None where nobody answered.
    status: int | None
    #: What went wrong; None: it was taken.
    error: str | None = None


class Webhook:
    """Sends bodies to one URL. Follows no redirect: a signed alert goes where it was addressed, or nowhere."""

    def __init__(self, url: str, secret: str, *, timeout_s: float, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """`transport` stands in for the network in tests."""
        self._url = url
        self._secret = secret
        self._client = httpx.AsyncClient(timeout=timeout_s, follow_redirects=False, transport=transport)

    def __repr__(self) -> str:
        """Where it sends, without what may be secret in a path."""
        return f"<Webhook({urlsplit(self._url).hostname})>"

    async def send(self, body: bytes, *, delivery: int, timestamp: int) -> Answer:
        """One attempt. Taken is what is answered with 2xx; the answer's body is not read."""
        headers = {
            "Content-Type": "application/json",
            TIMESTAMP_HEADER: str(timestamp),
            SIGNATURE_HEADER: signature(self._secret, timestamp, body),
            DELIVERY_HEADER: str(delivery),
        }
        try:
            async with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                status = response.status_code
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            return Answer(status=None, error=type(exc).__name__)
        return Answer(status=status, error=None if httpx.codes.is_success(status) else f"answered {status}")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()
