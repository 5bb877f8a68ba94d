"""Losses of the levels that a bandit chooses among, in the order in which they came."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from winnow.cli.unit_lines import bad, objects, text, whole


class Seen(NamedTuple):
    """What a line says: the place of its level among the arms, and how many units were lost, the same and gained."""

    place: int
    lost: int
    same: int
    gained: int


def read_arms(name: str, content: bytes, arms: Sequence[str]) -> Iterator[Seen]:
    """Each line's units: one (`level`, `loss`) or a batch (`level`, `lost`, `gained`, `n`).

    Raises:
        BadLosses: a line is of no such form, or of a level that is not there; the text gives its number.
    """
    places = {arm: place for place, arm in enumerate(arms)}
    for number, value in objects(name, content):
        if not isinstance(value, dict) or not (value.keys() >= {"level", "loss"} or value.keys() >= {"level", "lost", "gained", "n"}):
            bad(name, number, "a line has a level and its loss, or a level with lost, gained and n")
        level = text(name, number, value, "level")
        if level not in places:
            bad(name, number, f"level {level[:40]!r} is none of those that --level names")
        if "loss" in value:
            loss = value["loss"]
            if isinstance(loss, bool) or loss not in (-1, 0, 1):
                bad(name, number, "a loss is 1 (lost), 0 or -1 (gained)")
            yield Seen(places[level], int(loss == 1), int(loss == 0), int(loss == -1))
            continue
        lost, gained, n = (whole(name, number, value, field) for field in ("lost", "gained", "n"))
        if lost + gained > n:
            bad(name, number, f"{lost} lost and {gained} gained of {n} units")
        yield Seen(places[level], lost, n - lost - gained, gained)
