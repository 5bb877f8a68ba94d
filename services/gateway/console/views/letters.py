"""Dead letters for a page: their bytes as text, and whether they can be played again from here."""

from dataclasses import dataclass

from markupsafe import Markup

from services.gateway.console.views.text import visible
from winnow.contracts.envelope import CLAIM_HEADER
from winnow.contracts.topics import topic_named
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


def obstacle(letter: DeadLetter, topic_prefix: str) -> str | None:
    """Why the letter cannot be played again from the console; None: it can."""
    new = letter.letter
    topic = topic_named(new.topic, topic_prefix)
    if topic is None or topic.event is None:
        return "its topic is none of the registry's; see `winnow dead-letters replay`"
    if not new.value:
        return "it has no body"
    if len(new.value) > topic.max_body_bytes:
        return "it is larger than its topic takes"
    try:
        (new.key or b"").decode()
    except UnicodeDecodeError:
        return "its key is not UTF-8; see `winnow dead-letters replay`"
    return None


def claim_headers(letter: DeadLetter) -> dict[str, str]:
    """The one header that the outbox keeps: that the body is a claim check. All others are made anew from topic and body."""
    claimed = any(name == CLAIM_HEADER and value == b"1" for name, value in letter.letter.headers)
    return {CLAIM_HEADER: "1"} if claimed else {}


def _text(data: bytes | None, most: int) -> Markup:
    """Bytes as text: a prefix is decoded, since no page shows 10 MiB."""
    if data is None:
        return Markup("")
    some = data[: 4 * most].decode("utf-8", "backslashreplace")
    text = visible(some, most)
    return text if len(data) <= 4 * most else text + Markup(" …")
