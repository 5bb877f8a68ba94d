"""Dead letters for a page: their bytes as text."""

from dataclasses import dataclass

from markupsafe import Markup

from services.gateway.console.views.text import visible
from winnow.storage.dead_letters import DeadLetter

#: Characters of a body and of a header that a page shows; `winnow dead-letters show --raw` gives all bytes.
BODY_CHARS = 20_000
HEADER_CHARS = 500
#: Headers that a page shows.
MOST_HEADERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Key, headers and body, as text where they are text."""

    key: Markup
    headers: tuple[tuple[Markup, Markup], ...]
    more_headers: int
    body: Markup
    size: int


def shown(letter: DeadLetter) -> Shown:
    """The letter's bytes; what is no UTF-8 stands as escapes."""
    new = letter.letter
    body = new.value or b""
    return Shown(
        key=_text(new.key, HEADER_CHARS),
        headers=tuple((visible(name, 100), _text(value, HEADER_CHARS)) for name, value in new.headers[:MOST_HEADERS]),
        more_headers=max(0, len(new.headers) - MOST_HEADERS),
        body=_text(body, BODY_CHARS),
        size=len(body),
    )


def _text(data: bytes | None, most: int) -> Markup:
    """Bytes as text: a prefix is decoded, since no page shows 10 MiB."""
    if data is None:
        return Markup("")
    some = data[: 4 * most].decode("utf-8", "backslashreplace")
    text = visible(some, most)
    return text if len(data) <= 4 * most else text + Markup(" …")
