"""Playing a run through a real Winnow, boundary after boundary, as an agent runtime with the SDK."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from winnow.client import Compaction, WinnowClient, boundary
from winnow.contracts.events import Candidate
from winnow.contracts.vocabulary import Mode
from winnow.demo.data import DemoRun

#: Seconds that each boundary may take: ample for a machine that has just started a database, a broker and five services.
DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One boundary that was played."""

    candidate: Candidate
    result: Compaction


async def play(client: WinnowClient, run: DemoRun, *, name: str, fleet: str) -> AsyncIterator[Played]:
    """Play `run` under the run name `name`, each boundary with what the last one left as its previous summary.

    At the end the run is reported as ended.
    """
    previous: Compaction | None = None
    for one in run.boundaries:
        candidate = boundary(
            fleet=fleet,
            run=name,
            index=one.index,
            agent="booking",
            host="openclaw",
            mode=Mode.ENFORCE,
            task=run.task,
            history=one.history,
            retained=one.retained,
            candidate=one.candidate,
            previous=previous,
        )
        previous = await client.compact(candidate, deadline_s=DEADLINE_S)
        yield Played(candidate=candidate, result=previous)
    client.run_ended(name, fleet=fleet)
