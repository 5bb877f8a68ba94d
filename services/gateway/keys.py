"""API keys of requests: verified by hash, remembered for a moment, bound to one fleet."""

import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from services.gateway.problems import ProblemError
from winnow.client.api import ProblemReason
from winnow.contracts.events import sha256
from winnow.storage import api_keys
from winnow.storage.api_keys import ApiKey
from winnow.storage.database import Database

#: Keys that are remembered. Beyond it the oldest are asked for again; an attacker who tries keys cannot grow memory.
REMEMBERED = 10_000
#: Seconds that a refused key is remembered: short, since a key may have been made a moment ago.
REFUSED_S = 2.0

bearer = HTTPBearer(auto_error=False, scheme_name="ApiKey", description="An API key of one fleet: `Authorization: Bearer wnw_...`.")


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

    async def verify(self, secret: str) -> ApiKey | None:
        """The key that `secret` is, or None."""
        digest = sha256(secret.encode("utf-8", "surrogatepass"))
        found = self._known.get(digest)
        if found is not None and found[0] > self._clock():
            return found[1]
        async with self._database.fleet_transaction("") as tx:
            key = await api_keys.verify(tx, secret, now=self._now())
        self._known[digest] = (self._clock() + (self._cache_s if key is not None else min(REFUSED_S, self._cache_s)), key)
        self._known.move_to_end(digest)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return key


async def authenticate(request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> ApiKey:
    """The API key of a request. Raise `ProblemError` where there is none that works."""
    keys: Keys = request.app.state.keys
    key = await keys.verify(credentials.credentials) if credentials is not None else None
    if key is None:
        raise ProblemError(ProblemReason.UNAUTHORISED, "send `Authorization: Bearer wnw_...` with a key that is not revoked")
    request.scope["winnow.fleet"] = key.fleet
    return key


async def may_submit(key: Annotated[ApiKey, Depends(authenticate)]) -> ApiKey:
    """A key that may submit boundaries and report for runtimes: not a grader's."""
    if key.role == "grader":
        raise ProblemError(ProblemReason.FORBIDDEN, "a grader's key reads and sends observations; use a runtime's key")
    return key


#: Any valid key.
Reader = Annotated[ApiKey, Depends(authenticate)]
#: A key of a runtime or an operator.
Submitter = Annotated[ApiKey, Depends(may_submit)]
