"""What leaves for a judge, without secrets and image bytes.

Secrets are found by `detect_secrets`, whose pattern detectors are kept up by others; a list of our own would age. Its two entropy
detectors are left out: they take commit hashes, ids and base64 words for secrets, which are what entries are about. So is the one for
public addresses, which are no secret. What its detectors know in an older form, or not at all, is added here: Winnow's own keys, `sk-`
keys, bearer tokens. Each secret becomes `[masked:<kind>]`, the same in every text of the request, so an entry and the output that it
rests on stay alike.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, Protocol, cast

#: Detectors of `detect_secrets` that are not used; see the module's docstring.
_LEFT_OUT: Final = frozenset({"Base64HighEntropyString", "HexHighEntropyString", "IPPublicDetector", "KeywordDetector"})
#: Characters that a detector sees at once, and how far two windows overlap: some expressions take time in the square of their text.
_WINDOW, _OVERLAP = 2048, 256
#: Characters from which a secret that has a digit is masked wherever it stands; a shorter one, or a word, may be something else there.
_SECRET_CHARS: Final = 8
#: Secrets that are looked for in the other texts of the request. No boundary has so many; it bounds the time for one that is made of them.
_EVERYWHERE: Final = 256
#: For the keyword detector, whose time grows with the square of a word that repeats a keyword: its windows, the longest word it is shown,
#: and looks at one text (each tells the first secret of its window). Beyond the last look every quoted string beside a keyword is masked.
_KEYWORD_WINDOW, _KEYWORD_OVERLAP, _KEYWORD_LOOKS = 512, 128, 100
_LONG_WORD: Final = re.compile(r"\w{65,}")
_QUOTED: Final = re.compile(r"(['\"`])([^'\"`\n]{1,512})\1")
#: A line without one of these in lower case has no secret for the keyword detector, which takes a hundred times as long to say so.
_KEYWORDS: Final = re.compile(r"(?i)key|pass|pwd|secret|contrase")
#: What a token goes on with after the part that its detector insists on: newer kinds are longer.
_MORE: Final = re.compile(r"[A-Za-z0-9_+/=-]{0,512}")
_JWT_MORE: Final = re.compile(r"[A-Za-z0-9_.+/=-]{0,4096}")
#: Kinds that `detect_secrets` 1.5 does not know, or knows in an older form.
_MORE_KINDS: Final = (
    ("winnow-key", re.compile(r"\bwnw_[A-Za-z0-9_-]{6,512}")),
    ("provider-key", re.compile(r"\bsk-(?=[A-Za-z_-]{0,32}[0-9])[A-Za-z0-9_-]{16,512}")),
    ("bearer-token", re.compile(r"(?i)\bbearer\s{1,4}([A-Za-z0-9._~+/=-]{20,4096})")),
)
#: A key with its head; up to the end where the passage is cut before its foot.
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)", re.DOTALL
)
#: Bytes of images, fonts and archives in texts: data URLs, long runs of base64, and base64 in lines (which the middle of a key is, too).
_DATA_URL: Final = re.compile(r"data:[a-zA-Z0-9.+-]{1,60}/[a-zA-Z0-9.+-]{1,60}(?:;[a-zA-Z0-9=._-]{1,60}){0,4};base64,[A-Za-z0-9+/=_-]*")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{256,}={0,2}")
#: What base64 of that length has and a long number in decimal or hexadecimal (`0x`) has not.
_OF_BASE64: Final = (re.compile(r"[G-WYZ]"), re.compile(r"[g-wyz]"), re.compile(r"[0-9]"))
_BASE64_LINES: Final = re.compile(
    r"(?:(?<=\n)|\A)[A-Za-z0-9+/]{60,76}(?:\r?\n[A-Za-z0-9+/]{60,76}){3,}(?:\r?\n[A-Za-z0-9+/]{1,76}={0,2})?(?=\s|\Z)"
)


class Detector(Protocol):
    """One kind of secret."""

    kind: str

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where secrets of this kind stand in `text`."""
        ...


class _Pattern:
    """A detector made of regular expressions."""

    def __init__(self, kind: str, patterns: Sequence[re.Pattern[str]], more: re.Pattern[str] | None = None) -> None:
        self.kind = kind
        self._patterns = patterns
        self._more = more

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The longest group of eight characters or more (the value beside its name), else the whole match with what it goes on with."""
        for start in range(0, max(1, len(text) - _OVERLAP), _WINDOW - _OVERLAP):
            stop = min(len(text), start + _WINDOW)
            for pattern in self._patterns:
                for found in pattern.finditer(text, start, stop):
                    groups = [found.span(i) for i in range(1, (found.re.groups or 0) + 1) if found.group(i)]
                    low, high = max(groups, key=lambda span: span[1] - span[0], default=(0, 0))
                    if high - low >= _SECRET_CHARS:
                        yield low, high
                    elif found.group().strip():
                        low, high = found.span()
                        rest = (self._more or _MORE).match(text, high)
                        yield low, rest.end() if rest is not None and (self._more or text[high - 1].isalnum()) else high


class _Keyword:
    """The keyword detector: a value in quotes beside a name such as `password`. It reads lines."""

    kind = "secret-keyword"

    def __init__(self, detector: "_Analyses") -> None:
        self._detector = detector

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """All values, line by line; a long line in windows."""
        offset, looks = 0, _KEYWORD_LOOKS
        for line in text.splitlines(keepends=True):
            for start in range(0, max(1, len(line) - _KEYWORD_OVERLAP), _KEYWORD_WINDOW - _KEYWORD_OVERLAP):
                window = line[start : start + _KEYWORD_WINDOW]
                if _KEYWORDS.search(window) is None:
                    continue
                found, looks = self._of(_LONG_WORD.sub(_blank, window), looks)
                for low, high in found:
                    yield offset + start + low, offset + start + high
            offset += len(line)

    def _of(self, window: str, looks: int) -> tuple[list[tuple[int, int]], int]:
        """The values in a window, each blanked before the next is looked for, and the looks that are left."""
        spans: list[tuple[int, int]] = []
        while looks > 0:
            looks -= 1
            values = {value for value in self._detector.analyze_string(window) if value.strip()}
            if not values:
                return spans, looks
            for value in sorted(values, key=lambda v: (-len(v), v)):
                at = window.find(value)
                while at >= 0:
                    spans.append((at, at + len(value)))
                    window = window[:at] + "\0" * len(value) + window[at + len(value) :]
                    at = window.find(value, at + len(value))
        return spans + [found.span(2) for found in _QUOTED.finditer(window)], 0


def _blank(found: re.Match[str]) -> str:
    """As many characters that are no word."""
    return "\0" * len(found.group())


class _Analyses(Protocol):
    """What is used of the keyword detector."""

    def analyze_string(self, string: str) -> Iterator[str]:
        """The values in a line."""
        ...


@cache
def detectors() -> tuple[Detector, ...]:
    """The detectors in use. Loaded once, in half a second: a constant."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class  # noqa: PLC0415  only remote judges need it
    from detect_secrets.plugins.base import BasePlugin, RegexBasedDetector  # noqa: PLC0415  the same
    from detect_secrets.plugins.keyword import KeywordDetector  # noqa: PLC0415  the same

    made: list[Detector] = []
    plugins = cast("Mapping[str, type[BasePlugin]]", get_mapping_from_secret_type_to_class())
    for secret_type, plugin in sorted(plugins.items()):
        if plugin.__name__ in _LEFT_OUT or not issubclass(plugin, RegexBasedDetector):
            continue
        more = _JWT_MORE if plugin.__name__ == "JwtTokenDetector" else None
        made.append(_Pattern(re.sub(r"[^a-z0-9]+", "-", secret_type.lower()), tuple(plugin().denylist), more))
    made += [_Pattern(kind, (pattern,)) for kind, pattern in _MORE_KINDS]
    made.append(_Keyword(KeywordDetector()))
    return tuple(made)


class Masker:
    """Masks texts of one request together."""

    def __init__(self, using: Sequence[Detector] | None = None) -> None:
        """Mask with `using`, or with all that `detectors` gives."""
        self._detectors = detectors() if using is None else tuple(using)

    def mask(self, texts: Sequence[str]) -> list[str]:
        """`texts` without secrets and image bytes; deterministic, in time linear in their length."""
        bare = [_without_bytes(text) for text in texts]
        found = [list(self._found(text)) for text in bare]
        everywhere: dict[str, str] = {}
        for text, spans in zip(bare, found, strict=True):
            for low, high, kind in spans:
                value = text[low:high]
                if len(everywhere) < _EVERYWHERE and len(value) >= _SECRET_CHARS and any(c.isdigit() for c in value):
                    everywhere.setdefault(value, kind)
        masked = [_replaced(text, spans) for text, spans in zip(bare, found, strict=True)]
        for value in sorted(everywhere, key=lambda v: (-len(v), v)):
            masked = [text.replace(value, f"[masked:{everywhere[value]}]") for text in masked]
        return masked

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where secrets stand, and of which kind."""
        for detector in self._detectors:
            for low, high in detector.spans(text):
                yield low, high, detector.kind


def _without_bytes(text: str) -> str:
    """`text` without private keys and encoded bytes."""
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub("[masked:private-key]", text)
    if "base64," in text:
        text = _DATA_URL.sub("[masked:data-url]", text)
    return _BASE64.sub(_blob, _BASE64_LINES.sub("[masked:base64]", text))


def _blob(found: re.Match[str]) -> str:
    """The mask of a long run, where it has what encoded bytes have: capitals and small letters beyond those of hexadecimal, and digits."""
    run = found.group()
    return "[masked:base64]" if all(kind.search(run) for kind in _OF_BASE64) else run


def _replaced(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    """`text` with each span masked; of two that overlap the one that begins first, then the longer one."""
    parts: list[str] = []
    at = 0
    for low, high, kind in sorted(spans, key=lambda s: (s[0], -s[1], s[2])):
        if low < at:
            at = max(at, high)  # the tail of an overlapping one must not be left
            continue
        parts += (text[at:low], f"[masked:{kind}]")
        at = high
    return "".join((*parts, text[at:]))
