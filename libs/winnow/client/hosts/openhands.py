"""OpenHands: `JudgedCondenser(inner=LLMSummarizingCondenser(...)).through(bridge, run=...)` as an agent's condenser.

A condenser turns a view of the events into a shorter view or into a `Condensation`, which names the events to forget and carries the
summary. Condensers are models that the host stores and loads; the bridge is not stored, and a condenser without one is the inner one.
"""

from collections.abc import Sequence
from typing import Any, Self

# Installed by the host, never by Winnow: mypy here does not know it.
from openhands.sdk.context.condenser.base import CondenserBase  # type: ignore[import-not-found,import-untyped,unused-ignore]
from pydantic import PrivateAttr, SerializeAsAny

from winnow.client.building import Turn
from winnow.client.hosts.bridge import Bridge, Foreign, RunOf, Span
from winnow.client.readers.openhands import turn_of
from winnow.client.readers.session import as_turn


class JudgedCondenser(CondenserBase):  # type: ignore[misc]  # its base is unknown without the host
    """A condenser whose summaries are judged before the agent sees them."""

    inner: SerializeAsAny[CondenserBase]
    _bridge: Bridge | None = PrivateAttr(default=None)
    _run: RunOf = PrivateAttr(default="openhands")

    def through(self, bridge: Bridge, *, run: RunOf) -> Self:
        """The same condenser, with the bridge to go through; `run` names the conversation, which a condenser is not told."""
        self._bridge, self._run = bridge, run
        return self

    def handles_condensation_requests(self) -> bool:
        """As the inner condenser says."""
        return bool(self.inner.handles_condensation_requests())

    def condense(self, view: Foreign, agent_llm: Foreign = None) -> Foreign:
        """What the inner condenser makes of the view, with the committed text in it."""
        made = self.inner.condense(view, agent_llm=agent_llm)
        if self._bridge is None or not (candidate := getattr(made, "summary", None)):
            return made
        text = self._bridge.judged(candidate, lambda: span(view.events, made), run=self._run)
        return made if text == candidate else made.model_copy(update={"summary": text})

    async def acondense(self, view: Foreign, agent_llm: Foreign = None) -> Foreign:
        """`condense` for an event loop."""
        made = await self.inner.acondense(view, agent_llm=agent_llm)
        if self._bridge is None or not (candidate := getattr(made, "summary", None)):
            return made
        text = await self._bridge.judged_async(candidate, lambda: span(view.events, made), run=self._run)
        return made if text == candidate else made.model_copy(update={"summary": text})


def span(events: Sequence[Any], condensation: Foreign) -> Span:
    """What the summary replaces; a summary among the forgotten events is the previous one."""
    gone = {str(one) for one in condensation.forgotten_event_ids}
    history: list[Turn] = []
    retained: list[Turn] = []
    previous: str | None = None
    task = ""
    for event in events:
        value = event.model_dump(mode="json")
        forgotten = str(value.get("id")) in gone
        if "CondensationSummaryEvent" in (value.get("kind"), type(event).__name__):
            previous = value.get("summary") if forgotten else previous
        elif (turn := turn_of(value | {"kind": value.get("kind") or type(event).__name__}, str(value.get("id")))) is not None and turn.text:
            (history if forgotten else retained).append(as_turn(turn))
            task = task or (turn.text if turn.kind == "user" else "")
    return Span(history=history, retained=retained, previous=previous, task=task)
