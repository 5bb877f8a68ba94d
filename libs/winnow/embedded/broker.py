"""The seam between what needs a Kafka broker and which one it is."""

from enum import StrEnum
from pathlib import Path
from typing import Protocol, Self


class Capability(StrEnum):
    """What a broker can do beyond topics, groups and order, which all of them can. Tests and settings ask for these by name."""

    CONTROL = "control"  # we may stop, kill and restart it
    PERSISTENCE = "persistence"  # records, topics and committed offsets survive a restart
    IDEMPOTENCE = "idempotence"  # idempotent producers
    TRANSACTIONS = "transactions"  # transactional producers, fencing, read_committed
    RETENTION = "retention"  # old records are dropped by time and size
    COMPACTION = "compaction"  # compacted topics
    MESSAGE_LIMITS = "message_limits"  # max.message.bytes of a topic is enforced
    CREATE_PARTITIONS = "create_partitions"  # a topic can be given more partitions
    ALTER_CONFIGS = "alter_configs"  # a topic's settings can be changed
    DELETE_RECORDS = "delete_records"  # records up to an offset can be deleted


#: What Apache Kafka does, ours or a cluster that somebody else runs; the latter is not ours to kill.
APACHE_KAFKA = frozenset(Capability) - {Capability.CONTROL}


class BrokerHandle(Protocol):
    """A broker that its holder starts and ends.

    Every method blocks and none is thread-safe; beside an event loop, call them from a worker thread. After `start` the broker is
    ready for clients; it keeps its port for as long as the handle lives.
    """

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients; raises NotRunningError before the first start."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do; known before it is started."""

    @property
    def alive(self) -> bool:
        """Whether its process runs, as far as we can know."""

    @property
    def log_file(self) -> Path | None:
        """What it has to say; None where its log is not ours."""

    def start(self) -> Self:
        """Start it and wait until it is ready; at once if it runs. Raises an EmbeddedError that says what to do."""

    def stop(self) -> None:
        """End it cleanly; harmless where it does not run."""

    def kill(self) -> None:
        """End it with SIGKILL; `start` brings it back on the same port, with its records where it has persistence."""

    def restart(self) -> None:
        """End it cleanly and start it again on the same port."""
