"""Services in one process: start, watch, stop.

class Service(Protocol):
    name: str
    async def start(self) -> None      # connect, subscribe; returns when it consumes or listens
    async def stop(self) -> None       # let go of partitions, finish the running batch, close pools; idempotent
    def checks(self) -> Sequence[Check]

exit_code = await run([service, ...], telemetry=..., settings=KafkaSettings())
"""
