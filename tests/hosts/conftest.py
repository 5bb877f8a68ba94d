"""What the tests of host adapters share: a bridge into a Winnow in memory that prunes each line with the word `PLAN`.

They run with the real host libraries (`make test-hosts`), and are skipped where one is not installed. Nothing here needs the services,
which cannot be installed beside them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.unit.client.answers import pruned
from winnow.client import SyncWinnowClient
from winnow.client.hosts import Bridge
from winnow.client.result import Compaction
from winnow.client.testing import MemoryTransport
from winnow.contracts.errors import Retryable
from winnow.contracts.events import Candidate, Committed, RuntimeEvent
from winnow.contracts.vocabulary import Mode, RuntimeEventKind

SUMMARY = "## Done\n- 12 tests passed\n- PLAN to delete the branch\n- port 3000 is taken\n"
COMMITTED = "## Done\n- 12 tests passed\n- port 3000 is taken\n"


@dataclass
class Winnow:
    """A Winnow in memory, and what it was asked."""

    transport: MemoryTransport
    bridge: Bridge
    asked: list[Candidate] = field(default_factory=list)
    results: list[Compaction] = field(default_factory=list)

    def outage(self) -> None:
        self.transport.outage = Retryable()

    def messages(self, n: int = -1) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Kind and text of H and R of boundary `n`."""
        asked = self.asked[n]
        return [(m.kind.value, m.text) for m in asked.history], [(m.kind.value, m.text) for m in asked.retained]


def bypasses(reports: list[object]) -> list[str | None]:
    return [r.because for r in reports if isinstance(r, RuntimeEvent) and r.kind is RuntimeEventKind.BYPASSED]


@pytest.fixture
def winnow_for() -> Iterator[Callable[..., Winnow]]:
    """A Winnow for one host."""
    opened: list[SyncWinnowClient] = []

    def make(host: str, **options: object) -> Winnow:
        asked: list[Candidate] = []
        results: list[Compaction] = []

        def answers(candidate: Candidate, request_sha256: str) -> Committed:
            asked.append(candidate)
            spans, at = [], 0
            for line in candidate.candidate.splitlines(keepends=True):
                size = len(line.encode())
                spans += [(at, at + size)] if "PLAN" in line else []
                at += size
            return pruned(candidate, request_sha256, *spans)

        transport = MemoryTransport(answers)
        client = SyncWinnowClient(transport, deadline_s=5.0)
        client.__enter__()
        opened.append(client)
        bridge = Bridge(client, host=host, mode=Mode.ENFORCE, on_result=results.append, **options)
        return Winnow(transport=transport, bridge=bridge, asked=asked, results=results)

    yield make
    for client in opened:
        client.close()
