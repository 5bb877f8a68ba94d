"""How much one key may ask, and how often one address may fail to say who it is.

Token buckets in the memory of this process: over several gateways a key has the quota of each. Nothing here waits, and memory has a bound.
"""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from services.gateway.problems import ProblemError
from winnow.client.api import ProblemReason

K = TypeVar("K")

#: Buckets that are remembered. Who is forgotten has been quiet for longest, and so has a full bucket again, or soon would.
REMEMBERED = 10_000
#: Bits of an IPv6 address that are told apart: one customer has the 64 behind them (RFC 6177).
IPV6_PREFIX = 64
MINUTE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What is left in a bucket."""

    #: Tokens of a full bucket.
    limit: int
    #: Whole tokens that are left.
    remaining: int
    #: Seconds until it is full again.
    full_in_s: int
    #: Seconds until there is a token; 0: there is one.
    wait_s: int

    @property
    def headers(self) -> dict[str, str]:
        """The header fields that tell a client of it, as draft-ietf-httpapi-ratelimit-headers named them up to its version 6."""
        return {
            "ratelimit-limit": str(self.limit),
            "ratelimit-remaining": str(self.remaining),
            "ratelimit-reset": str(self.full_in_s),
        }


class Buckets(Generic[K]):
    """A token bucket for each of many names."""

    def __init__(self, *, rate_per_s: float, burst: float, clock: Callable[[], float] = time.monotonic, most: int = REMEMBERED) -> None:
        """A bucket holds `burst` tokens and gets `rate_per_s` of them a second; `most` are remembered."""
        self._rate = rate_per_s
        self._burst = burst
        self._clock = clock
        self._most = most
        self._known: OrderedDict[K, tuple[float, float]] = OrderedDict()  # name -> tokens, and when they were that many

    def __len__(self) -> int:
        """Buckets that are remembered."""
        return len(self._known)

    def look(self, name: K) -> Allowance:
        """What `name` has, without taking any."""
        return self._said(self._tokens(name))

    def take(self, name: K) -> Allowance:
        """Take a token of `name`, where there is one; `wait_s` says whether there was."""
        tokens = self._tokens(name)
        if tokens < 1:
            return self._said(tokens)
        self._known[name] = (tokens - 1, self._clock())
        self._known.move_to_end(name)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        said = self._said(tokens - 1)
        return Allowance(limit=said.limit, remaining=said.remaining, full_in_s=said.full_in_s, wait_s=0)

    def _tokens(self, name: K) -> float:
        tokens, at = self._known.get(name, (self._burst, self._clock()))
        return min(self._burst, tokens + (self._clock() - at) * self._rate)

    def _said(self, tokens: float) -> Allowance:
        return Allowance(
            limit=int(self._burst),
            remaining=int(tokens),
            full_in_s=math.ceil((self._burst - tokens) / self._rate),
            wait_s=0 if tokens >= 1 else max(1, math.ceil((1 - tokens) / self._rate)),
        )


class Quotas:
    """The quotas of one gateway."""

    def __init__(self, *, rate_per_s: float, burst: int, failures_per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Requests of a key, and failed sign-ins of an address; 0 turns a limit off."""
        self._requests = Buckets[str](rate_per_s=rate_per_s, burst=max(1, burst), clock=clock) if rate_per_s > 0 else None
        failures = failures_per_minute
        self._failures = Buckets[str](rate_per_s=failures / MINUTE_S, burst=failures, clock=clock) if failures > 0 else None

    def spend(self, key: str) -> Allowance | None:
        """Count a request of `key`; None: there is no limit. Raise `ProblemError` where it has asked too much."""
        if self._requests is None:
            return None
        left = self._requests.take(key)
        if left.wait_s:
            detail = "this key has asked too much; send less at once, or ask your operator for a higher WINNOW_GATEWAY_RATE_PER_S"
            raise limited(detail, left)
        return left

    def failed(self, address: str) -> None:
        """Count a request of `address` that had no key that works."""
        if self._failures is not None:
            self._failures.take(neighbourhood(address))

    def refuse(self, address: str) -> None:
        """Raise `ProblemError` where `address` has failed so often that no further key of it is looked up."""
        if self._failures is None:
            return
        left = self._failures.look(neighbourhood(address))
        if left.wait_s:
            raise limited("too many requests without a key that works came from this address; wait, then send a key that does", left)


def limited(detail: str, left: Allowance) -> ProblemError:
    """Too much was asked: the client may come back after `left.wait_s` seconds."""
    return ProblemError(ProblemReason.RATE_LIMITED, detail, headers=left.headers | {"retry-after": str(left.wait_s)})


def neighbourhood(address: str) -> str:
    """What stands for an address: itself, or of IPv6 the network of one customer. Anything that is no address is a name like any other."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.IPv6Network((parsed, IPV6_PREFIX), strict=False))
    return str(parsed)
