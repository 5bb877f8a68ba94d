"""Untrusted text for a page: what would act on the page, or hide in it, is written out."""

import json
import re
from collections.abc import Iterator, Mapping

from markupsafe import Markup, escape

#: Characters that move, hide or end other text: controls but tab and line feed, marks of direction, zero-width ones, tags. Joiners of emoji
#: and scripts (U+200C, U+200D) stay.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
#: Characters of one text that a page shows.
MOST_CHARS = 4_000


def visible(text: str, most: int = MOST_CHARS) -> Markup:
    """`text` escaped, acting characters as their code, cut after `most` characters with a word on how many are left."""
    shown = text[:most].replace("\r\n", "\n")
    parts: list[Markup] = []
    at = 0
    for found in _ACTING.finditer(shown):
        parts += (escape(shown[at : found.start()]), Markup('<span class="code">U+{:04X}</span>').format(ord(found[0])))
        at = found.end()
    parts.append(escape(shown[at:]))
    if len(text) > most:
        parts.append(Markup(' <span class="cut">… {:,} more characters</span>').format(len(text) - most))
    return Markup("").join(parts)


def line(text: str, most: int = 120) -> Markup:
    """`text` on one line, of at most `most` characters."""
    words = " ".join(text[: 4 * most].split())
    shown = visible(words[:most], most)
    return shown if len(words) <= most and len(text) <= 4 * most else shown + Markup("…")


#: Details of one row that a page shows, and the characters of each.
MOST_DETAILS, DETAIL_CHARS = 12, 160


def told(details: Mapping[str, object]) -> Iterator[tuple[Markup, Markup]]:
    """Names and values of an audit row's details; what says nothing (null, an empty list) is left out."""
    said = [(name, value) for name, value in details.items() if value not in (None, "", [], {})]
    for name, value in said[:MOST_DETAILS]:
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield line(name.replace("_", " "), 60), line(shown, DETAIL_CHARS)
    if len(said) > MOST_DETAILS:
        yield Markup(""), Markup("and {} more").format(len(said) - MOST_DETAILS)
