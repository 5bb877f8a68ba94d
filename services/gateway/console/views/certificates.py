"""A certificate for a page: its state now, and the words of its record."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from winnow.contracts.vocabulary import Guarantee
from winnow.storage.certificates import Certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A certificate with what its page says beside its columns."""

    certificate: Certificate
    #: live, expired, superseded or revoked.
    state: str
    statement: str | None
    assumptions: tuple[str, ...]
    guarantee: Guarantee


def shown(one: Certificate, now: datetime) -> Shown:
    """The certificate as it stands at `now`. A record of another shape says less, and is no error."""
    said = one.record.get("certificate")
    certified: Mapping[str, object] = said if isinstance(said, Mapping) else {}
    statement, assumptions = certified.get("statement"), certified.get("assumptions")
    return Shown(
        certificate=one,
        state=state_of(one, now),
        statement=statement if isinstance(statement, str) else None,
        assumptions=tuple(map(str, assumptions)) if isinstance(assumptions, list | tuple) else (),
        guarantee=_guarantee(one),
    )


def state_of(one: Certificate, now: datetime) -> str:
    """Whether it holds now, and if not, why."""
    if one.revoked_at is not None:
        return "superseded" if (one.revoked_because or "").startswith("superseded by ") else "revoked"
    return "live" if one.issued_at <= now < one.expires_at else "expired"


def _guarantee(one: Certificate) -> Guarantee:
    """The class that stands in brackets behind the method; the one that promises nothing where there is none."""
    word = one.method.rpartition("(")[2].rstrip(")")
    return Guarantee(word) if word in set(Guarantee) else Guarantee.NONE
