"""The decided units of one epoch of a stream, in sampling order: what its evidence was made of."""

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance import ledger
from winnow.assurance.ledger import Epoch, Fate, Signature, Unit
from winnow.contracts.streams import MISSING_PREFIX
from winnow.storage import raw
from winnow.storage.keys import StreamKey

#: Units of an epoch that are read for a picture: a tenth of a second to fold, and 3 MB on the way.
MOST = 20_000

_UNITS = """
SELECT seq, loss, lo, probability, fate FROM observations
WHERE fleet = $1 AND stream = $2 AND seq >= $3 AND fate IS NOT NULL ORDER BY seq LIMIT $4
"""


async def load(tx: AsyncConnection, key: StreamKey, epoch: Epoch) -> list[tuple[Unit, Fate]] | None:
    """The units of `epoch`, which must be the stream's last. None where there are more than `MOST`.

    A stream of missing grades reads the units of the stream that it counts.
    """
    source = key.stream.removeprefix(MISSING_PREFIX)
    rows = await raw.fetch(tx, _UNITS, key.fleet, source, epoch.from_seq, MOST + 1)
    if len(rows) > MOST:
        return None
    units = [(Unit(r["seq"], r["loss"], r["lo"], r["probability"], Signature()), Fate(r["fate"])) for r in rows]
    return units if source == key.stream else [(one, Fate.FOLDED) for one in ledger.as_missing(units)]
