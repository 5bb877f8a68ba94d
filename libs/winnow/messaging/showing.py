"""A dead letter for whoever looks at it: text without secrets. Its bytes stay as they came, for they are played again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from winnow.judging.adapters.masking import Masker, detectors
from winnow.telemetry.redaction import mask_text

#: Characters beyond what is shown that are masked too, of a body, of a key or a header's value, and of a header's name: a secret that the
#: end cuts in two is known by neither half.
MARGIN, SHORT_MARGIN, NAME_MARGIN = 8_192, 2_048, 200
#: Bytes of a character in UTF-8, at most.
WIDEST = 4
#: Characters of a key and of a header's value that are shown, of a header's name, and headers.
SHORT_CHARS, NAME_CHARS, MOST_HEADERS = 500, 100, 60
#: Characters from which a secret is masked wherever it stands; a shorter one may be another word there, and is masked between quotes.
LONG_SECRET = 8
ESCAPED_QUOTE, ESCAPED_END = re.compile(r"\\+([\"'])"), re.compile(r"\\+[nr]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Key, headers and body as text. What is no UTF-8 stands as escapes; secrets stand as `[masked:<kind>]` or `***`."""

    key: str | None
    headers: tuple[tuple[str, str], ...]
    #: Headers that are left out.
    more_headers: int
    body: str
    #: The body goes on.
    cut: bool
    #: Bytes of the whole body.
    size: int


def shown(key: bytes | None, headers: Sequence[tuple[str, bytes]], value: bytes | None, *, body_chars: int) -> Shown:
    """The letter with at most `body_chars` characters of its body.

    A value that is masked in one place is masked in all of them. The first call takes half a second, until the detectors are loaded.
    """
    body = value or b""
    some = headers[:MOST_HEADERS]
    parts = [_begun(key or b"", SHORT_CHARS, SHORT_MARGIN)]
    for name, data in some:
        parts += [_begun(name.encode("utf-8", "backslashreplace"), NAME_CHARS, NAME_MARGIN), _begun(data, SHORT_CHARS, SHORT_MARGIN)]
    parts.append(_begun(body, body_chars, MARGIN))
    masked = [mask_text(text) for text in Masker().mask(_without_escaped([part.text for part in parts]))]
    texts = [part.cut(text) for part, text in zip(parts, masked, strict=True)]
    return Shown(
        key=None if key is None else texts[0],
        headers=tuple(zip(texts[1:-1:2], texts[2:-1:2], strict=True)),
        more_headers=len(headers) - len(some),
        body=texts[-1],
        cut=not parts[-1].whole or len(masked[-1]) > body_chars,
        size=len(body),
    )


def names(said: Sequence[str | None]) -> list[str | None]:
    """Runs as a list of letters may show them: a run is what its producer wrote behind the fleet, and may be anything."""
    masked = iter(Masker().mask([mask_text(one) for one in said if one is not None]))
    return [None if one is None else next(masked) for one in said]


def _without_escaped(texts: Sequence[str]) -> list[str]:
    """`texts` without secrets that are only seen where quotes and line ends are not escaped: bodies are JSON, often with JSON inside."""
    values: dict[str, str] = {}
    for text in texts:
        if "\\" in text:
            plain = ESCAPED_END.sub("\n", ESCAPED_QUOTE.sub(r"\1", text))
            for detector in detectors():
                values |= {plain[low:high]: detector.kind for low, high in detector.spans(plain) if _word(plain[low:high])}
    if not values:
        return list(texts)
    ordered = sorted(values, key=lambda value: (-len(value), value))
    anywhere = [re.escape(value) for value in ordered if len(value) >= LONG_SECRET]
    quoted = [re.escape(value) for value in ordered if len(value) < LONG_SECRET]
    found = re.compile("|".join([*anywhere, rf"(?<=[\"'])(?:{'|'.join(quoted)})(?=\\*[\"'])"] if quoted else anywhere))
    return [found.sub(lambda match: f"[masked:{values[match.group()]}]", text) for text in texts]


def _word(value: str) -> bool:
    """It has something that a secret is made of."""
    return any(c.isalnum() for c in value)


class _Begun(NamedTuple):
    """The beginning of a text: what is shown of it, and the margin."""

    text: str
    most: int
    margin: int
    #: That is all of it.
    whole: bool

    def cut(self, masked: str) -> str:
        """What is shown of it once it is masked: of a text that goes on without its margin, at whose end half a secret may stand."""
        return (masked if self.whole else masked[: max(0, len(masked) - self.margin)])[: self.most]


def _begun(data: bytes, most: int, margin: int) -> _Begun:
    """`most` characters of `data` and a margin: no page shows 10 MiB, and none is masked for it."""
    text = data[: WIDEST * (most + margin)].decode("utf-8", "backslashreplace")
    whole = len(data) <= WIDEST * (most + margin) and len(text) <= most + margin
    return _Begun(text=text[: most + margin], most=most, margin=margin, whole=whole)
