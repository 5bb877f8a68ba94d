"""What all tables share."""

from sqlalchemy import MetaData
from sqlalchemy.dialects.postgresql import TIMESTAMP

metadata = MetaData()
#: A point in time with its zone; Winnow stores no local times.
INSTANT = TIMESTAMP(timezone=True)
