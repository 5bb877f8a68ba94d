"""Calls into aiokafka that may end in any way without ending their caller.

aiokafka cancels tasks of its own and lets their CancelledError out: of `stop()` right after `start()` always, of other calls while a broker
is away. In the caller it would look as if the caller had been cancelled: the reader's task ended silently, and an agent would take itself
for cancelled. A call in a task of its own keeps the two apart; it can also be left behind where it does not end (aiokafka#659).
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def isolated(work: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
    """The result of `work`. Raise what it raises, `TimeoutError` after `seconds`, `ConnectionError` where it was cancelled from inside."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(_looked_at)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
    if not task.done():
        raise TimeoutError
    if task.cancelled():
        raise ConnectionError("the Kafka client gave up its own task")
    return task.result()


async def discarded(work: Coroutine[Any, Any, object], seconds: float) -> None:
    """Let a clean-up take `seconds`; what it raises or does not finish no longer matters."""
    try:
        await isolated(work, seconds)
    except Exception:  # noqa: BLE001  the thing is being thrown away
        return


def _looked_at(task: "asyncio.Future[Any]") -> None:
    """Take the exception of a task that was left behind, which asyncio would report as forgotten."""
    if not task.cancelled():
        task.exception()
