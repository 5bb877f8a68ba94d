"""The client for agent runtimes: `async with WinnowClient(HttpTransport(url, key)) as client: await client.compact(boundary(...))`.

Needs pydantic, httpx and aiokafka alone.
"""

from winnow.client.building import InvalidBoundary, action, boundary, notice, output, user
from winnow.client.client import WinnowClient
from winnow.client.http import HttpTransport
from winnow.client.kafka import KafkaTransport
from winnow.client.recovery import Recovered
from winnow.client.result import Because, Compaction, IdConflict, Unheard
from winnow.client.sync import SyncWinnowClient
from winnow.client.transport import Transport

__all__ = [
    "Because",
    "Compaction",
    "HttpTransport",
    "IdConflict",
    "InvalidBoundary",
    "KafkaTransport",
    "Recovered",
    "SyncWinnowClient",
    "Transport",
    "Unheard",
    "WinnowClient",
    "action",
    "boundary",
    "notice",
    "output",
    "user",
]
