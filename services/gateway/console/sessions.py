"""Sessions of people: a signed cookie that names the hash of an API key, and nothing that could be used as one.

The key is looked up again with every request, by that hash: a revoked or expired key ends its sessions, within the seconds that the
gateway remembers a key. Nothing is stored, so any gateway with the same secret knows the session.
"""

import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

#: Bytes of randomness in a session, which keep the tokens of two sessions of one key apart.
NONCE_BYTES = 16
#: The hash of the key's secret, seconds since 1970 when it ends (11 digits end with the year 5138), the nonce; then the signature.
_COOKIE = re.compile(r"v1\.([0-9a-f]{64})\.([0-9]{1,11})\.([0-9a-f]{32})\.([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Somebody who has signed in."""

    #: SHA-256 of the API key's secret.
    key_sha256: str
    ends_at: datetime
    nonce: str

    @property
    def signed(self) -> str:
        """What the cookie says, without its signature."""
        return f"v1.{self.key_sha256}.{int(self.ends_at.timestamp())}.{self.nonce}"


class Sessions:
    """Makes and reads session cookies."""

    def __init__(self, secret: bytes, *, life: timedelta, now: Callable[[], datetime]) -> None:
        """`secret` signs; a session ends `life` after it began."""
        self._secret = secret
        self._life = life
        self._now = now

    def begin(self, key_sha256: str) -> Session:
        """A session for the key with this hash."""
        return Session(key_sha256=key_sha256, ends_at=self._now() + self._life, nonce=secrets.token_hex(NONCE_BYTES))

    def cookie(self, session: Session) -> str:
        """The session as its cookie."""
        return f"{session.signed}.{self._mac('session', session)}"

    def read(self, cookie: str) -> Session | None:
        """The session of a cookie that was made here and has not ended; None for anything else."""
        found = _COOKIE.fullmatch(cookie)
        if found is None:
            return None
        session = Session(key_sha256=found[1], ends_at=datetime.fromtimestamp(int(found[2]), UTC), nonce=found[3])
        genuine = hmac.compare_digest(self._mac("session", session), found[4])
        return session if genuine and session.ends_at > self._now() else None

    def token(self, session: Session) -> str:
        """What a form of this session must carry: another site cannot read it (a cross-site request forgery has none)."""
        return self._mac("form", session)

    def sent(self, session: Session, token: str) -> bool:
        """Whether a form came from a page of this session."""
        return hmac.compare_digest(self.token(session).encode(), token.encode("utf-8", "surrogatepass"))

    def _mac(self, purpose: str, session: Session) -> str:
        return hmac.new(self._secret, f"{purpose}\n{session.signed}".encode(), "sha256").hexdigest()
