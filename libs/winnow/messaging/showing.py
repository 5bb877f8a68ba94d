"""A dead letter for whoever looks at it: text without secrets. Its bytes stay as they came, for they are played again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from winnow.judging.adapters.masking import Masker, detectors
from winnow.telemetry.redaction import mask_text

#: Characters beyond what is shown that are masked too: a secret that the end cuts in two is known by neither half.
MARGIN = 8_192
#: Bytes of a character in UTF-8, at most.
WIDEST = 4
#: Characters of a key and of a header's value that are shown, and headers.
SHORT_CHARS, MOST_HEADERS = 500, 60

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
    parts = [(key or b"", SHORT_CHARS)]
    for name, data in some:
        parts += [(name.encode("utf-8", "backslashreplace"), SHORT_CHARS), (data, SHORT_CHARS)]
    parts.append((body, body_chars))
    begun = [_begun(data, most) for data, most in parts]
    masked = [mask_text(text) for text in Masker().mask(_without_escaped([text for text, _ in begun]))]
    texts = [_cut(text, most, whole=whole) for text, (_, whole), (_, most) in zip(masked, begun, parts, strict=True)]
    return Shown(
        key=None if key is None else texts[0],
        headers=tuple(zip(texts[1:-1:2], texts[2:-1:2], strict=True)),
        more_headers=len(headers) - len(some),
        body=texts[-1],
        cut=not begun[-1][1] or len(masked[-1]) > body_chars,
        size=len(body),
    )


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


def _begun(data: bytes, most: int) -> tuple[str, bool]:
    """The first `most` characters and `MARGIN` more, and whether that is all: no page shows 10 MiB, and none is masked for it."""
    text = data[: WIDEST * (most + MARGIN)].decode("utf-8", "backslashreplace")
    return text[: most + MARGIN], len(data) <= WIDEST * (most + MARGIN) and len(text) <= most + MARGIN


def _cut(masked: str, most: int, *, whole: bool) -> str:
    """`most` characters at most; of a text that goes on without its last ones, which may begin a secret that ends beyond them."""
    return (masked if whole else masked[: max(0, len(masked) - MARGIN)])[:most]
