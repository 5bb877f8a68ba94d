"""Servers for one machine, without containers: PostgreSQL, Apache Kafka, and a small Kafka-compatible broker."""

from winnow.embedded.broker import APACHE_KAFKA, BrokerHandle, Capability
from winnow.embedded.deadline import Deadline
from winnow.embedded.errors import AlreadyRunningError, EmbeddedError, MissingToolError, NotRunningError, StartFailedError
from winnow.embedded.kafka import KafkaBroker
from winnow.embedded.mesh import MeshBroker
from winnow.embedded.paths import cache_dir, state_dir
from winnow.embedded.postgres import PostgresServer

__all__ = [
    "APACHE_KAFKA",
    "AlreadyRunningError",
    "BrokerHandle",
    "Capability",
    "Deadline",
    "EmbeddedError",
    "KafkaBroker",
    "MeshBroker",
    "MissingToolError",
    "NotRunningError",
    "PostgresServer",
    "StartFailedError",
    "cache_dir",
    "state_dir",
]
