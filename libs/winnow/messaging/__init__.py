"""The bus: broker factory, codec, batch handler, outbox, dead letters, tracing, health."""

from winnow.messaging.bus import Bus
from winnow.messaging.records import Dead, Handled, Handler, Outgoing, Received, Record
from winnow.messaging.settings import KafkaSettings

__all__ = ["Bus", "Dead", "Handled", "Handler", "KafkaSettings", "Outgoing", "Received", "Record"]
