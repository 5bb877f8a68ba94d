"""Exact identifiers in messages, as OpenClaw looks for them: addresses, paths, host and port, hashes, long numbers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

#: Messages before the cut whose identifiers a summary must hold, and how many of them.
LAST_MESSAGES: Final = 10
MAX_IDENTIFIERS: Final = 12
#: Characters; shorter is chance, longer is data (and would eat the summary's budget).
_SHORTEST, _LONGEST = 4, 512

_BREAKS: Final = re.compile(r"[\s\"'`()\[\]{}<>,;|=\x00]+")
_ADDRESS: Final = re.compile(r"https?://[^\s\"'`()\[\]{}<>,;|\x00]+")
_RUN: Final = re.compile(r"[A-Fa-f0-9]{8}|[0-9]{6}")
_WORD: Final = re.compile(r"[A-Za-z0-9_-]+")
_NUMBER: Final = re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?[a-z]{0,12}")
_PATH: Final = re.compile(r"[\w./-]+")
_HOST: Final = re.compile(r"[A-Za-z0-9._/-]+")


def identifiers_of(messages: Sequence[str]) -> tuple[str, ...]:
    """Return the first 12 different identifiers in the last ten of the summarised `messages`, in their order.

    Pure hexadecimal ones are in upper case, as the host compares them. Linear in the messages' length.
    """
    found: dict[str, None] = {}
    for message in messages[-LAST_MESSAGES:]:
        for identifier in _candidates(message):
            found[identifier] = None
            if len(found) == MAX_IDENTIFIERS:
                return tuple(found)
    return tuple(found)


def is_hex(identifier: str) -> bool:
    """Tell whether the identifier is a hash: eight or more hexadecimal digits and nothing else."""
    return len(identifier) >= 8 and not identifier.strip("0123456789abcdefABCDEF")  # noqa: PLR2004 # the host's shortest hash


def is_in(identifier: str, text: str, upper: str) -> bool:
    """Tell whether `text` holds the identifier; hashes are compared with `upper`, the text in upper case."""
    return identifier.upper() in upper if is_hex(identifier) else identifier in text


def missing(identifiers: Iterable[str], text: str) -> tuple[str, ...]:
    """Return those of `identifiers` that `text` does not hold."""
    upper = text.upper()
    return tuple(identifier for identifier in identifiers if not is_in(identifier, text, upper))


def _candidates(message: str) -> Iterator[str]:
    at = 0
    for address in _ADDRESS.finditer(message):
        yield from _plain(message[at : address.start()])
        yield from _clean(address.group())
        at = address.end()
    yield from _plain(message[at:])


def _plain(text: str) -> Iterator[str]:
    for token in _BREAKS.split(text):
        if _SHORTEST <= len(token) <= _LONGEST and _is_identifier(token.rstrip(".:!?")):
            yield from _clean(token)


def _clean(token: str) -> Iterator[str]:
    token = token.rstrip(".:!?")
    if _SHORTEST <= len(token) <= _LONGEST:
        yield token.upper() if is_hex(token) else token


def _is_identifier(token: str) -> bool:
    if token.startswith("/"):
        return token.count("/") > 1 and not token.endswith("/") and _PATH.fullmatch(token) is not None
    if token[1:3] == ":\\":
        return token[0].isalpha()
    host, colon, port = token.rpartition(":")
    if colon and "." in host and port.isascii() and port.isdigit() and len(port) <= 5:  # noqa: PLR2004 # digits of a port
        return _HOST.fullmatch(host) is not None
    return _RUN.search(token) is not None and _WORD.fullmatch(token) is not None and (token.isdigit() or _NUMBER.fullmatch(token) is None)
