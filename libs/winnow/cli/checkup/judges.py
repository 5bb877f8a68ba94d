"""Findings of the judges: configured soundly, and whether their endpoints can be reached, without asking them anything."""

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from winnow.cli.checkup.findings import Finding, error, note, ok, warning

if TYPE_CHECKING:
    import httpx

    from winnow.judging.adapters.specs import JudgesSettings

#: Seconds that an endpoint may take to answer anything at all.
KNOCK_S = 5.0


async def look(settings: "JudgesSettings", client: "httpx.AsyncClient | None" = None) -> list[Finding]:
    """Knock at each remote judge: a HEAD request without key and body, which costs nothing; any answer says that it is there."""
    import httpx

    from winnow.judging.adapters.specs import EnsembleSpec

    found = [ok("judges", f"{', '.join(settings.names)}")]
    remote = {name: spec for name, spec in settings.judges.items() if not isinstance(spec, EnsembleSpec)}
    if not remote:
        return found
    own = client or httpx.AsyncClient(timeout=KNOCK_S, follow_redirects=False)
    try:
        found += await asyncio.gather(*(_knock(own, name, spec.url) for name, spec in remote.items()))
    finally:
        if client is None:
            await own.aclose()
    found += [note(f"judge {name}", "no key is set; none is sent") for name, spec in remote.items() if spec.api_key is None]
    return found


async def _knock(client: "httpx.AsyncClient", name: str, url: str) -> Finding:
    """Whether anything answers at the host of `url`. The path may hold an account's name, so the host alone is said."""
    import httpx

    host, check = urlsplit(url).hostname or "?", f"judge {name}"
    try:
        answer = await client.head(url)
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        advice = "see DNS, proxy and firewall; until then the fallback answers, and scores are marked with it"
        return error(check, f"{host} cannot be reached ({type(exc).__name__})", advice)
    if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return warning(
            check, f"{host} answers {answer.status_code}", "the provider has trouble; its calls are retried, then the fallback answers"
        )
    return ok(check, f"{host} answers (its key was not tried: that would be a paid call)")
