"""Entries with known answers beside the real ones, for a share of the boundaries."""

import asyncio
import random
from collections.abc import Mapping

from winnow.contracts.events import Canary
from winnow.judging.canaries import Ground, draw, plant
from winnow.storage import canaries
from winnow.storage.database import Database
from winnow.storage.keys import Key

#: Characters of H and R from which planting works in a thread: it searches them once for each value of each donor.
INLINE_CHARACTERS = 50_000


class Planter:
    """Plants canaries; keeps nothing between two batches."""

    def __init__(self, database: Database, share: float) -> None:
        """`share`: of boundaries, 0 to 1."""
        self._database = database
        self._share = share

    async def plant(self, grounds: Mapping[Key, Ground]) -> dict[Key, tuple[Canary, ...]]:
        """The canaries of those boundaries that chance picks; one query for the donors of all of them."""
        drawn = {key: draw(key.fleet, key.boundary_id, self._share) for key in grounds}
        picked = [key for key, found in drawn.items() if found.planted]
        if not picked:
            return {}
        async with self._database.reading() as tx:
            donors = await canaries.donors(tx, {key.fleet for key in picked})
        made: dict[Key, tuple[Canary, ...]] = {}
        for key in picked:
            ground, chance = grounds[key], drawn[key]
            rng = random.Random(chance.seed)  # noqa: S311  chance that must repeat, guards nothing
            known = donors.get(key.fleet, ())
            if sum(len(m.text) for m in (*ground.history, *ground.retained)) > INLINE_CHARACTERS:
                made[key] = await asyncio.to_thread(plant, ground, known, chance, rng)
            else:
                made[key] = plant(ground, known, chance, rng)
        return made
