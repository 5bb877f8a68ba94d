"""OpenClaw's own steps between the model's summary and its adoption, for a runtime that lets Winnow take its compaction over.

They come before judging: the task as the first pending ask, missing identifiers appended, the length cap, the audit, one retry, and
otherwise no compaction at all. What they add is the host's, not Winnow's; the pruned text is never audited again.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from winnow.compaction.identifiers import MAX_IDENTIFIERS, identifiers_of, missing
from winnow.compaction.profiles.openclaw import HEADINGS, REQUEST_LABEL

__all__ = ["MAX_UNITS", "Attempt", "Finished", "audit", "finish", "finish_or_cancel", "identifiers_of", "utf16_units"]

#: UTF-16 code units, suffixes included; the host counts as JavaScript does.
MAX_UNITS: Final = 16_000
#: Share of the free budget that each of the two audited sections may take: without it an identifier list starves the others.
PROTECTED_SHARE: Final = 0.25
#: Share of the whole that suffixes may take.
SUFFIX_SHARE: Final = 0.5
MAX_RETRIES: Final = 3
TRUNCATED: Final = "[Earlier compaction context truncated to fit budget]"

_LINES: Final = tuple(f"## {heading}" for heading in HEADINGS)
_ASKS, _IDENTIFIERS = 3, 4
_NOTHING_PENDING: Final = frozenset({"none", "none captured", "no pending asks"})
_BREAK: Final = re.compile(r"\r\n|\r|\n")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A finished summary, and what the audit found; nothing found: the host would adopt it."""

    text: str
    audit: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request to the summariser: its number from 1, and what the audit of the one before found."""

    number: int
    failures: tuple[str, ...]


def utf16_units(text: str) -> int:
    """Return the length of `text` in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def finish(summary: str, *, latest_request: str | None, identifiers: Sequence[str], suffixes: Iterable[str] = ()) -> Finished:
    """Apply the host's steps to the model's `summary` and audit the result.

    `latest_request` is the user's unresolved request, None where there is none; `identifiers` are those that the summary must hold (see
    `identifiers_of`; the first 12 count); `suffixes` are appended as they are, cut where they take more than half of the cap. A summary
    without the five headings in their order is only cut: the audit then names what is missing. One that needs no step is not touched.
    """
    wanted = tuple(identifiers)[:MAX_IDENTIFIERS]
    request = request_line(latest_request) if latest_request and latest_request.strip() else None
    suffix = _cut("".join(suffixes), int(MAX_UNITS * SUFFIX_SHARE))
    budget = MAX_UNITS - utf16_units(suffix)
    contents = _sections(summary)
    body = _cut(summary, budget) if contents is None else _body(summary, contents, request, wanted, budget)
    text = body + suffix
    return Finished(text=text, audit=audit(body, text, request=request, identifiers=wanted))


def finish_or_cancel(
    summarise: Callable[[Attempt], str],
    *,
    latest_request: str | None,
    identifiers: Sequence[str],
    suffixes: Iterable[str] = (),
    retries: int = 1,
) -> Finished | None:
    """Ask for a summary until one passes the audit, at most `retries` times more; None: cancel, the history stays.

    `summarise` may block; what it raises passes through. Raises ValueError where `retries` is not 0 to 3, the host's own limits.
    """
    if not 0 <= retries <= MAX_RETRIES:
        raise ValueError(f"retries must be 0 to {MAX_RETRIES}, not {retries}")
    ends = tuple(suffixes)
    failures: tuple[str, ...] = ()
    for number in range(1, retries + 2):
        summary = summarise(Attempt(number=number, failures=failures))
        finished = finish(summary, latest_request=latest_request, identifiers=identifiers, suffixes=ends)
        if not finished.audit:
            return finished
        failures = finished.audit
    return None


def request_line(request: str) -> str:
    """Return the line that the host expects first among the pending asks: the request as JavaScript writes a JSON string."""
    quoted = json.dumps(request.strip(), ensure_ascii=False)
    return f"{REQUEST_LABEL} {_LONE_SURROGATE.sub(_escape, quoted)}"


def audit(body: str, text: str, *, request: str | None, identifiers: Sequence[str]) -> tuple[str, ...]:
    """Return what the host would object to in `text`, `body` with its suffixes: sections, identifiers, the request's place, the length."""
    failures: list[str] = []
    lines = [line.strip() for line in _BREAK.split(body)]
    at = -1
    for line, heading in zip(_LINES, HEADINGS, strict=True):
        count = lines.count(line)
        if count != 1:
            failures.append(f"{'duplicate' if count else 'missing'}_section:{heading}")
        elif lines.index(line) < at:
            failures.append(f"section_out_of_order:{heading}")
        else:
            at = lines.index(line)
    failures += [f"missing_identifier:{identifier}" for identifier in missing(identifiers, text)]
    if request is not None:
        below = lines[lines.index(_LINES[_ASKS]) + 1 :] if _LINES[_ASKS] in lines else []
        if next(filter(None, below), None) != request:
            failures.append("latest_request_not_first")
    if utf16_units(text) > MAX_UNITS:
        failures.append("too_long")
    return tuple(failures)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def _sections(summary: str) -> list[str] | None:
    """Return the contents under the five headings, text before the first folded into it; None unless all are there in order."""
    contents: list[list[str]] = [[]]
    found = 0
    for line in _BREAK.split(summary):
        if found < len(_LINES) and line.strip() == _LINES[found]:
            found += 1
            if found > 1:
                contents.append([])
        else:
            contents[-1].append(line)
    return ["\n".join(lines).strip() for lines in contents] if found == len(_LINES) else None


def _body(summary: str, contents: list[str], request: str | None, wanted: Sequence[str], budget: int) -> str:
    """Return the summary with request and identifiers in their places, cut to `budget`; itself where nothing is to be done."""
    asks = [line for line in _BREAK.split(contents[_ASKS]) if line.strip()]
    request_first = request is None or (bool(asks) and asks[0].strip() == request)
    contents = list(contents)
    if request is not None:
        nothing = bool(asks) and asks[0].strip().rstrip(".!").lower() in _NOTHING_PENDING
        contents[_ASKS] = "" if nothing else "\n".join(line for line in asks if line.strip() != request)
    reserved = _render(contents=[""] * len(_LINES), request=request, tail=wanted, marker=True)
    free = max(0, budget - utf16_units(reserved) - len(_LINES))  # a line break before each section's contents
    shares = _shares([utf16_units(content) for content in contents], free)
    cut = [_cut(content, share) for content, share in zip(contents, shares, strict=True)]
    trimmed = cut != contents
    if request_first and not trimmed and utf16_units(summary) <= budget and not missing(wanted, summary):
        return summary
    bare = _render(contents=cut, request=request, tail=(), marker=trimmed)
    return _render(contents=cut, request=request, tail=missing(wanted, bare), marker=trimmed)


def _render(*, contents: Sequence[str], request: str | None, tail: Sequence[str], marker: bool) -> str:
    parts: list[str] = []
    for at, (line, content) in enumerate(zip(_LINES, contents, strict=True)):
        if at == _ASKS and marker:
            parts.append(TRUNCATED)
        above = [request] if at == _ASKS and request is not None else []
        below = tail if at == _IDENTIFIERS else ()
        parts.append("\n".join(filter(None, [line, *above, content, *below])))
    return "\n\n".join(parts)


def _shares(sizes: Sequence[int], free: int) -> list[int]:
    """Divide `free` units: the two audited sections first, each up to its share; the others by size, in full where they fit."""
    cap = int(free * PROTECTED_SHARE)
    protected = [min(size, cap) for size in sizes[_ASKS:]]
    rest, total = free - sum(protected), sum(sizes[:_ASKS])
    others = [size if total <= rest else rest * size // total for size in sizes[:_ASKS]]
    return others + protected


def _cut(text: str, units: int) -> str:
    """Return the start of `text` that fits into `units` UTF-16 units, without half a surrogate pair."""
    if utf16_units(text) <= units:
        return text
    used = 0
    for at, sign in enumerate(text):
        used += 2 if sign > "\uffff" else 1
        if used > units:
            return text[:at]
    return text
