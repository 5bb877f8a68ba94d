"""A gateway over a real database with the pipeline's stages played record by record, for what agents ask back."""

from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.harness.pipeline import ScriptedJudge, Stages, candidate, output
from tests.integration.gateway.conftest import Stage, db, gateway_settings, kafka, stage  # noqa: F401  fixtures by name
from winnow.contracts.events import Committed, Message
from winnow.contracts.vocabulary import MessageKind
from winnow.storage import raw

#: A summary with one entry that the scripted judge finds a source for, and two plans that it does not.
SUMMARY = "## Decisions\n- flight HAT136 costs $152\n\n## Open TODOs\n- rebook via Lisbon on Friday\n- call the über-desk\n"
#: What the environment said of it.
FLIGHT = "flight HAT136 costs $152, seat 14C free"
SCORES = {"rebook": 0.1, "über": 0.2}


@dataclass
class House:
    """A fleet with its gateway and its pipeline."""

    stage: Stage
    stages: Stages

    @property
    def fleet(self) -> str:
        return self.stage.fleet

    async def compact(self, text: str = SUMMARY, *, run: str = "r", index: int = 1, **more: Any) -> Committed:
        """One boundary through the whole pipeline."""
        return await self.stages.one(candidate(text, run=run, index=index, fleet=self.fleet, **more))

    async def ask(self, handle: str, **more: Any) -> httpx.Response:
        return await self.stage.http.post("/v1/recoveries", json={"handle": handle} | more)

    async def pruned(self, run: str = "r", **more: Any) -> list[dict[str, Any]]:
        answer = await self.stage.http.get("/v1/pruned-entries", params={"run": run} | more)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    async def search(self, q: str, **more: Any) -> list[dict[str, Any]]:
        answer = await self.stage.http.get("/v1/search", params={"q": q} | more)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    async def rows(self, sql: str, *arguments: object) -> list[dict[str, Any]]:
        async with self.stage.db.transaction() as tx:
            return [dict(row) for row in await raw.fetch(tx, sql, self.fleet, *arguments)]

    def counted(self, name: str, **labels: str) -> float:
        """Value of a counter of the gateway."""
        wanted = "{" + ",".join(f'{key}="{value}"' for key, value in sorted(labels.items())) + "}" if labels else ""
        for line in self.stage.telemetry.metrics.render().decode().splitlines():
            head, _, value = line.rpartition(" ")
            if head == name + wanted:
                return float(value)
        return 0.0


@pytest.fixture
async def house(stage, db) -> House:  # noqa: F811  the fixtures above
    return House(stage, Stages(db, judge=ScriptedJudge(SCORES)))


@pytest.fixture
async def other(stage, db) -> httpx.AsyncClient:  # noqa: F811  the same
    """A client of another fleet."""
    key, _ = await stage.new_key(f"{stage.fleet}-other")
    async with stage.client(key) as http:
        yield http


def tool_result(i: int, text: str, tool: str | None = "mcp__winnow__expand") -> Message:
    """What an agent got from a recovery tool, as its host stores it."""
    return Message(i=i, kind=MessageKind.ENVIRONMENT, text=text, tool=tool)


__all__ = ["FLIGHT", "SUMMARY", "House", "output", "tool_result"]
