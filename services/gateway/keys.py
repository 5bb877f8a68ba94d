"""API keys of requests: verified by hash, remembered for a moment, bound to their fleets, and what their roles may do.

A route says what it needs by the type of its key: `Reader`, `Submitter`, `Observer`, `Auditor`, `Operator`.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from services.gateway.problems import ProblemError
from services.gateway.quotas import Quotas
from winnow.client.api import ProblemReason
from winnow.contracts.access import Right, Role
from winnow.contracts.events import sha256
from winnow.storage import api_keys
from winnow.storage.api_keys import ApiKey
from winnow.storage.database import Database

#: Keys that are remembered. Beyond it the oldest are asked for again; an attacker who tries keys cannot grow memory.
REMEMBERED = 10_000
#: Seconds that a refused key is remembered: short, since a key may have been made a moment ago.
REFUSED_S = 2.0

bearer = HTTPBearer(auto_error=False, scheme_name="ApiKey", description="An API key: `Authorization: Bearer wnw_...`.")
#: The header by which a request with a key of several fleets says which one it means.
FLEET_HEADER = "winnow-fleet"


class Keys:
    """Verifies keys against the database, at most once every few seconds each."""

    def __init__(
        self, database: Database, *, cache_s: float, now: Callable[[], datetime], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`cache_s` seconds a verified key is remembered; `now` is the wall clock, `clock` a monotonic one."""
        self._database = database
        self._cache_s = cache_s
        self._now = now
        self._clock = clock
        # By hash: secrets do not stay in memory, and comparing hashes tells nothing of a secret by its timing.
        self._known: OrderedDict[str, tuple[float, ApiKey | None]] = OrderedDict()

    def knew(self, secret: str) -> bool:
        """Whether `secret` was a key that worked when it was looked up last."""
        found = self._known.get(sha256(secret.encode("utf-8", "surrogatepass")))
        return found is not None and found[1] is not None

    async def verify(self, secret: str) -> ApiKey | None:
        """The key that `secret` is, or None."""
        if not api_keys.well_formed(secret):
            return None
        return await self.by_hash(sha256(secret.encode("utf-8", "surrogatepass")))

    async def by_hash(self, digest: str) -> ApiKey | None:
        """The key whose secret has the SHA-256 `digest`, or None."""
        found = self._known.get(digest)
        if found is not None and found[0] > self._clock():
            return found[1] if found[1] is None or found[1].alive(self._now()) else None
        async with self._database.fleet_transaction("") as tx:
            key = await api_keys.verify_hash(tx, digest, now=self._now())
        self._known[digest] = (self._clock() + (self._cache_s if key is not None else min(REFUSED_S, self._cache_s)), key)
        self._known.move_to_end(digest)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return key


def of_fleet(key: ApiKey, fleet: str | None) -> ApiKey:
    """The key as it stands for `fleet`; None: its first. Raise `ProblemError` where it does not cover that fleet."""
    if fleet is None or fleet == key.fleet:
        return key
    if fleet not in key.fleets:
        raise ProblemError(ProblemReason.OTHER_FLEET, "the key does not cover the fleet that the request names")
    return replace(key, fleet=fleet, also=tuple(f for f in key.fleets if f != fleet))


def allow(key: ApiKey, right: Right) -> ApiKey:
    """The key, where its role has `right`. Raise `ProblemError`."""
    if not key.may(right):
        able = " or ".join(role for role in Role if role.may(right))
        raise ProblemError(ProblemReason.FORBIDDEN, f"a key of the role {key.role} may not {right}; use one of the role {able}")
    return key


async def admit(keys: Keys, quotas: Quotas, secret: str | None, address: str) -> ApiKey:
    """The key that `secret` is. Raise `ProblemError` where it is none, or where its sender has failed too often of late.

    An address that fails too often still gets through with keys that worked before: those of others may come from there as well.
    """
    if secret is None or not keys.knew(secret):
        quotas.refuse(address)
    key = await keys.verify(secret) if secret is not None else None
    if key is None:
        quotas.failed(address)
        raise ProblemError(ProblemReason.UNAUTHORISED, "send `Authorization: Bearer wnw_...` with a key that is not revoked or expired")
    return key


async def authenticate(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
    fleet: Annotated[
        str | None,
        Header(alias=FLEET_HEADER, max_length=64, description="Which fleet is meant, where the key covers several; else the key's first."),
    ] = None,
) -> ApiKey:
    """The API key of a request, as it stands for the fleet that is meant. Raise `ProblemError` where there is none that works."""
    quotas: Quotas = request.app.state.quotas
    secret = credentials.credentials if credentials is not None else None
    key = of_fleet(await admit(request.app.state.keys, quotas, secret, address_of(request)), fleet)
    request.scope["winnow.fleet"] = key.fleet
    left = quotas.spend(str(key.key_id))
    if left is not None:
        request.scope["winnow.headers"] = left.headers
    return key


def address_of(request: Request) -> str:
    """Where a request comes from, as far as the web server knows."""
    return request.client.host if request.client is not None else ""


@dataclass(frozen=True, slots=True)
class require:  # noqa: N801  it reads as the verb that it is: `Depends(require(Right.READ))`
    """What a route depends on: a valid key whose role has `right`. Raise `ProblemError`."""

    right: Right

    async def __call__(self, key: Annotated[ApiKey, Depends(authenticate)]) -> ApiKey:
        """The key of the request."""
        return allow(key, self.right)


#: Keys by what a route needs. `winnow.contracts.access` says which role may what.
Reader = Annotated[ApiKey, Depends(require(Right.READ))]
Submitter = Annotated[ApiKey, Depends(require(Right.SUBMIT))]
Observer = Annotated[ApiKey, Depends(require(Right.OBSERVE))]
Auditor = Annotated[ApiKey, Depends(require(Right.AUDIT))]
Operator = Annotated[ApiKey, Depends(require(Right.OPERATE))]
