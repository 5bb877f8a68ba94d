"""Between a host library and the client: numbers a run's boundaries, carries the previous summary, and fails open in everything."""

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

from winnow.client.building import Turn, boundary
from winnow.client.client import checked_seconds
from winnow.client.result import Compaction
from winnow.client.sync import SyncWinnowClient
from winnow.contracts.vocabulary import Mode, Trigger

log = logging.getLogger("winnow.client.hosts")

#: Runs whose last boundary is remembered; the one that compacted longest ago is forgotten first, and starts again at 1.
RUNS = 10_000

#: An object of a host library, which Winnow does not import where it need not: a message, an event, a client.
Foreign: TypeAlias = Any
#: The run that compacts now: a name, or what tells it, where one object of the host serves many sessions.
RunOf = str | Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a summary is about to replace, as a wrap takes it from its host. Built inside the bridge's guard, so it may fail."""

    history: Iterable[Turn]
    retained: Iterable[Turn] = ()
    #: The previous summary as the host carries it. None: the host does not show it, and the bridge takes what it handed over last.
    previous: str | None = None
    task: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last:
    """The last boundary of a run."""

    index: int
    boundary_id: UUID | None = None
    summary: str | None = None


class Bridge:
    """Hands a host's summaries to Winnow and gives back what the agent goes on with. Thread-safe; one for all sessions of a process.

    Takes the synchronous client, since hosts compact from threads as well as from event loops; `judged_async` waits in a thread.
    """

    def __init__(
        self,
        client: SyncWinnowClient,
        *,
        host: str,
        fleet: str = "default",
        agent: str = "agent",
        mode: Mode | str = Mode.SHADOW,
        deadline_s: float | None = None,
        on_result: Callable[[Compaction], None] | None = None,
    ) -> None:
        """`host` names the summary's format (a profile or an alias of one); `mode` is the most that may happen, `shadow` to begin with.

        `deadline_s` is how long a compaction may wait (left out: the client's). `on_result` sees each result, for example to show the
        `unsupported` entries of annotate mode; what it raises is logged. Raise `ValueError` for a mode or a deadline that is none.
        """
        self._client = client
        self._host, self._fleet, self._agent, self._mode = host, fleet, agent, Mode(mode)
        self._deadline_s = None if deadline_s is None else checked_seconds(deadline_s)
        self._on_result = on_result
        self._runs: OrderedDict[str, _Last] = OrderedDict()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        """The host, and how many runs are remembered."""
        return f"<Bridge({self._host}, {self._mode}, runs={len(self._runs)})>"

    def judged(
        self,
        candidate: str,
        span: Callable[[], Span],
        *,
        run: RunOf,
        compressor: str | None = None,
        trigger: Trigger = Trigger.THRESHOLD,
        custom_instructions: str | None = None,
    ) -> str:
        """What the agent goes on with: the committed text, or `candidate` whatever goes wrong. Never raises.

        `span` is called once, here. A text without a word is the host's own failure: it is given back, and reported as `bypassed`.
        """
        name = "unknown"
        try:
            name = run if isinstance(run, str) else run()
            if not candidate.strip():
                self._client.bypassed(name, "empty_summary", fleet=self._fleet)
                return candidate
            found = span()
            last = self._begin(name)
            previous = last.summary if found.previous is None else found.previous
            asked = boundary(
                fleet=self._fleet,
                run=name,
                index=last.index + 1,
                candidate=candidate,
                history=found.history,
                retained=found.retained,
                previous=previous,
                # A host that forks or rewrites its summary carries another text than ours: Winnow finds the parent by its hash.
                previous_boundary_id=last.boundary_id if previous == last.summary else None,
                task=found.task,
                agent=self._agent,
                host=self._host,
                mode=self._mode,
                compressor=compressor,
                trigger=trigger,
                custom_instructions=custom_instructions,
            )
            result = self._client.compact(asked, deadline_s=self._deadline_s)
            self._end(name, _Last(index=asked.index, boundary_id=result.boundary_id, summary=result.summary))
            self._show(result)
        except Exception:  # whatever a host's objects, a hostile name or a defect of the wrap raises
            log.exception("bridge_failed", extra={"host": self._host})
            self.bypassed(name, "adapter_failed")
            return candidate
        return result.summary

    async def judged_async(
        self,
        candidate: str,
        span: Callable[[], Span],
        *,
        run: RunOf,
        compressor: str | None = None,
        trigger: Trigger = Trigger.THRESHOLD,
        custom_instructions: str | None = None,
    ) -> str:
        """`judged` for an event loop: it waits in a thread, with the caller's context variables."""
        return await asyncio.to_thread(
            self.judged, candidate, span, run=run, compressor=compressor, trigger=trigger, custom_instructions=custom_instructions
        )

    def last_summary(self, run: RunOf) -> str | None:
        """The summary that the run was given last; None where it had none, or the name cannot be told."""
        try:
            name = run if isinstance(run, str) else run()
        except Exception:  # noqa: BLE001  the caller's code may raise anything; `judged` calls it again, logs and reports it
            return None
        with self._lock:
            last = self._runs.get(name)
        return last.summary if last else None

    def bypassed(self, run: RunOf, because: str) -> None:
        """Report that a compaction of the host went past Winnow. Never raises."""
        try:
            self._client.bypassed(run if isinstance(run, str) else run(), because, fleet=self._fleet)
        except Exception:  # a name that is none, a client that is closed
            log.exception("bridge_failed", extra={"host": self._host})

    def run_ended(self, run: RunOf, *, recovery_tool: bool | None = None) -> None:
        """Report that a run is over, and whether its agent could ask back what was pruned (left out: as the client was told). Never raises.

        No host library tells a wrap that a session has ended: the application that ends it calls this.
        """
        try:
            self._client.run_ended(run if isinstance(run, str) else run(), recovery_tool=recovery_tool, fleet=self._fleet)
        except Exception:  # a name that is none, a client that is closed
            log.exception("bridge_failed", extra={"host": self._host})

    def _begin(self, run: str) -> _Last:
        """The last boundary of the run; the number after it is taken at once, so that two compactions at a time have two."""
        with self._lock:
            last = self._runs.pop(run, _Last(index=0))
            self._runs[run] = _Last(index=last.index + 1, boundary_id=last.boundary_id, summary=last.summary)
            while len(self._runs) > RUNS:
                self._runs.popitem(last=False)
            return last

    def _end(self, run: str, now: _Last) -> None:
        with self._lock:
            known = self._runs.get(run)
            if known is None or known.index <= now.index:
                self._runs[run] = now

    def _show(self, result: Compaction) -> None:
        if self._on_result is None:
            return
        try:
            self._on_result(result)
        except Exception:  # the caller's code
            log.exception("on_result_failed", extra={"host": self._host})
