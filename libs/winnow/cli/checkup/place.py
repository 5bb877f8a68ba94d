"""Findings of this machine: the gateway it talks to, the state folder of `winnow up`, and its disk."""

import json
import os
import shutil
from http import HTTPStatus
from pathlib import Path

from winnow.cli.checkup.findings import Finding, error, note, ok, warning

#: Bytes that must be free where the embedded database writes: below the first it is soon full, below the second it may stop any moment.
FREE_WARN, FREE_ERROR = 2 * 2**30, 256 * 2**20
#: Seconds that the gateway may take to say how it is.
ASK_S = 5.0
#: Bytes of its answer that are read.
ANSWER_BYTES = 65_536


def of_disk(state: Path, *, free: int, used: int) -> Finding:
    """The disk that holds the state folder."""
    said = f"{free / 2**30:.1f} GiB free; {state.name} takes {used / 2**20:.0f} MiB"
    advice = "`winnow retention`, or a larger disk: PostgreSQL stops when it cannot write"
    if free < FREE_ERROR:
        return error("disk", said, advice)
    return warning("disk", said, advice) if free < FREE_WARN else ok("disk", said)


def of_state(state: Path) -> list[Finding]:
    """The state folder, where there is one."""
    from winnow.cli import endpoints

    if not state.is_dir():
        return [note("state", "no `winnow up` has run here")]
    found = [of_disk(state, free=shutil.disk_usage(state).free, used=size(state))]
    if (state / endpoints.FILE).exists() and endpoints.read(state) is None:
        advice = "start it again: `winnow up`; what HTTP had accepted is in the database"
        found.append(warning("state", "a `winnow up` of this folder ended without saying so", advice))
    return found


def size(folder: Path) -> int:
    """Bytes that a folder takes on its disk, links not followed; what cannot be read counts nothing."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                # Blocks of 512 bytes, whatever the file system's are: Apache Kafka's indexes are mostly holes.
                total += (Path(place) / name).lstat().st_blocks * 512
            except OSError:
                continue
    return total


async def of_gateway(url: str) -> list[Finding]:
    """What the gateway says of itself, without a key."""
    import httpx

    try:
        async with httpx.AsyncClient(timeout=ASK_S, follow_redirects=False) as client:
            answer = await client.get(f"{url.rstrip('/')}/readyz")
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        return [
            error("gateway", f"it cannot be reached ({type(exc).__name__})", "start it; runtimes go on with their own summaries meanwhile")
        ]
    if answer.status_code == HTTPStatus.OK:
        return [ok("gateway", "ready")]
    checks = _checks(answer.content[:ANSWER_BYTES])
    return [error("gateway", f"not ready ({answer.status_code}){checks}", "mend what its checks name")]


def _checks(body: bytes) -> str:
    """The failing checks of a /readyz answer, as far as it is one."""
    try:
        checks = json.loads(body)["checks"]
        return ": " + "; ".join(f"{name}: {said}" for name, said in checks.items() if said != "ok")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
