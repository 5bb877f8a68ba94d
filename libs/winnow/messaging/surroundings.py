"""What a consumer works with: everything that its handler is not."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from winnow.messaging.deadletters import DeadLetters
from winnow.messaging.faults import Classify, Limit, Patience, classify
from winnow.messaging.health import Progress
from winnow.messaging.ports import ClaimStore
from winnow.messaging.publisher import Publisher
from winnow.messaging.settings import KafkaSettings
from winnow.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a consumer needs beside its handler."""

    settings: KafkaSettings
    publisher: Publisher
    dead_letters: DeadLetters
    claims: ClaimStore | None
    telemetry: Telemetry
    progress: Progress
    #: Monotonic seconds.
    clock: Callable[[], float]
    #: Wall-clock seconds since the epoch, for the age of records.
    wall: Callable[[], float]
    rng: random.Random
    #: Set when the process stops: pauses end at once.
    stopping: asyncio.Event
    classify: Classify = classify
    patience: Patience = field(default_factory=Patience)
    limit: Limit = field(default_factory=Limit)
