"""Identifiers that are functions of their inputs, so that a repetition finds what the first time made."""

from uuid import UUID, uuid5

#: Namespace of all of Winnow's name-based identifiers.
NAMESPACE = UUID("6f0e0b9a-5f0c-5a3e-9d6e-3d1c7a9f4b21")


def boundary_id(fleet: str, run: str, index: int, candidate_sha256: str) -> UUID:
    """UUIDv5 of a boundary whose caller gave no id: the same summary at the same place of the same run is the same boundary."""
    return uuid5(NAMESPACE, "\x1f".join(("boundary", fleet, run, str(index), candidate_sha256)))


def event_id(fleet: str, boundary: UUID, event_type: str) -> UUID:
    """UUIDv5 of a stage's event: every publication of one stored result carries one id."""
    return uuid5(NAMESPACE, "\x1f".join(("event", fleet, str(boundary), event_type)))


def canary_id(fleet: str, stream: str, run: str) -> UUID:
    """UUIDv5 of a run's observation on a stream of canaries: the first boundary that counts gives it, later ones say nothing new."""
    return uuid5(NAMESPACE, f"canary\x1f{fleet}\x1f{stream}\x1f{run}")


def alert_id(fleet: str, *what: object) -> UUID:
    """UUIDv5 of an alert: what is told again of the same thing is the same alert."""
    return uuid5(NAMESPACE, "\x1f".join(("alert", fleet, *map(str, what))))
