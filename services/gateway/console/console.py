"""The console's parts, put together, and who looks at a page."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Self

from fastapi import Depends, Request

from services.gateway.console.feed import Feed
from services.gateway.console.pages import Pages, SignInError
from services.gateway.console.reading import Reading
from services.gateway.console.sessions import Session, Sessions
from services.gateway.console.settings import ConsoleSettings
from services.gateway.keys import Keys, allow, of_fleet
from services.gateway.problems import ProblemError
from winnow.client.api import ProblemReason
from winnow.contracts.access import Right
from winnow.storage.api_keys import ApiKey
from winnow.storage.database import Database

COOKIE = "winnow_session"
#: Bytes of a signing secret that is made at the start.
SECRET_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """The parts of one console."""

    settings: ConsoleSettings
    #: The gateway's own: a key that it remembers is remembered here too.
    keys: Keys
    sessions: Sessions
    reading: Reading
    feed: Feed
    pages: Pages
    #: What stands before all topic names.
    topic_prefix: str
    now: Callable[[], datetime]

    @classmethod
    def over(cls, database: Database, keys: Keys, settings: ConsoleSettings, *, topic_prefix: str, now: Callable[[], datetime]) -> Self:
        """A console over its own pool of connections."""
        given = settings.console_secret
        secret = secrets.token_bytes(SECRET_BYTES) if given is None else given.get_secret_value().encode()
        reading = Reading(database, timeout_s=settings.console_query_timeout_s)
        return cls(
            settings=settings,
            keys=keys,
            sessions=Sessions(secret, life=timedelta(hours=settings.console_session_h), now=now),
            reading=reading,
            feed=Feed(reading, most=settings.console_max_streams),
            pages=Pages(),
            topic_prefix=topic_prefix,
            now=now,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Who looks at a page: a session and the key behind it."""

    key: ApiKey
    session: Session
    #: What its forms must carry.
    token: str

    @property
    def fleets(self) -> tuple[str, ...]:
        """The fleets that the key covers, by name."""
        return tuple(sorted(self.key.fleets))

    @property
    def audits(self) -> bool:
        """May look at dead letters and the audit trail."""
        return self.key.may(Right.AUDIT)

    @property
    def operates(self) -> bool:
        """May act."""
        return self.key.may(Right.OPERATE)

    def within(self, fleet: str, right: Right = Right.READ) -> ApiKey:
        """The key as it stands for `fleet`. Raise `ProblemError`: to others, a fleet that is not theirs is not there."""
        if fleet not in self.key.fleets:
            raise ProblemError(ProblemReason.NOT_FOUND, "this key covers no such fleet")
        return allow(of_fleet(self.key, fleet), right)


def console_of(request: Request) -> Console:
    """The console of the gateway that got `request`."""
    console: Console = request.app.state.console
    return console


async def viewer_of(request: Request) -> Viewer:
    """Who has signed in. Raise `SignInError` where nobody has, or the key has been revoked or has expired since."""
    console = console_of(request)
    session = console.sessions.read(request.cookies.get(COOKIE, ""))
    key = await console.keys.by_hash(session.key_sha256) if session is not None else None
    if session is None or key is None or not key.may(Right.READ):
        raise SignInError
    request.app.state.quotas.spend(str(key.key_id))
    request.scope["winnow.fleet"] = key.fleet
    return Viewer(key=key, session=session, token=console.sessions.token(session))


#: Somebody who has signed in.
SignedIn = Annotated[Viewer, Depends(viewer_of)]
