"""Dead letters for a page: their bytes as text, without secrets."""

from dataclasses import dataclass

from markupsafe import Markup

from services.gateway.console.views.text import visible
from winnow.messaging import showing
from winnow.storage.dead_letters import DeadLetter

#: Characters of a body that a page shows; `winnow dead-letters show --raw` gives all bytes, and writes down who asked.
BODY_CHARS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Key, headers and body, as text where they are text."""

    key: Markup
    run: str | None
    headers: tuple[tuple[Markup, Markup], ...]
    more_headers: int
    body: Markup
    size: int


def shown(letter: DeadLetter) -> Shown:
    """The letter's bytes, secrets masked; what is no UTF-8 stands as escapes. Takes up to a second: call it in a thread."""
    new = letter.letter
    seen = showing.shown(new.key, new.headers, new.value, body_chars=BODY_CHARS)
    body = visible(seen.body, BODY_CHARS)
    return Shown(
        run=showing.names([new.run])[0],
        key=visible(seen.key or "", showing.SHORT_CHARS),
        headers=tuple((visible(name, 100), visible(value, showing.SHORT_CHARS)) for name, value in seen.headers),
        more_headers=seen.more_headers,
        body=body + Markup(" …") if seen.cut else body,
        size=seen.size,
    )
