"""Services in processes of their own, and the supervisor that starts them again."""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from typing import Self

from tests.harness.processes import Program, Spawner

#: Seconds between two looks of the supervisor.
LOOK_S = 0.3


class Crew:
    """One process a service. Whatever ends by itself is started again, as systemd or Kubernetes would."""

    def __init__(self, spawner: Spawner, env: Mapping[str, str], names: Sequence[str]) -> None:
        """Describe; `start` starts."""
        self._spawner, self._env = spawner, dict(env)
        self.names = tuple(names)
        self._programs: dict[str, Program] = {}
        self._busy: set[str] = set()
        #: Exits that nobody asked for: service and status.
        self.deaths: list[tuple[str, int]] = []
        self._supervisor: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start all."""
        for name in self.names:
            self._programs[name] = self._spawner.services(name, env=self._env)
        self._supervisor = asyncio.create_task(self._supervise())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop supervising, then all services at once."""
        if self._supervisor is not None:
            self._supervisor.cancel()
        for program in self._programs.values():
            program.terminate()
        # No second signal: it ends a service at once, with its work undone.
        await asyncio.gather(*(asyncio.to_thread(program.wait) for program in self._programs.values()))

    def program(self, name: str) -> Program:
        """Return the process of a service."""
        return self._programs[name]

    async def strike(self, name: str, number: signal.Signals) -> None:
        """Send a signal that ends a service, wait until it has, and start it again."""
        self._busy.add(name)
        program = self._programs[name]
        try:
            program.send(number)
            await asyncio.to_thread(program.wait)
            await asyncio.to_thread(program.restart)
        finally:
            self._busy.discard(name)

    async def _supervise(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            for name, program in self._programs.items():
                if name not in self._busy and not program.alive:
                    self.deaths.append((name, program.returncode or 0))
                    await asyncio.to_thread(program.restart)

    def tails(self, characters: int = 3_000) -> str:
        """Return the end of what each service has to say, without the client's complaints about a broker that we killed."""
        parts: list[str] = []
        for name, program in self._programs.items():
            own = [line for line in program.output.splitlines() if '"logger": "aiokafka' not in line]
            parts.append(f"--- {name}, {program!r}\n" + "\n".join(own)[-characters:])
        return "\n".join(parts)
