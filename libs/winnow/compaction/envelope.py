"""What stands around the summary proper: host prefixes, thinking in front, wrapper tags, a fence around the whole (T16, T18)."""

from dataclasses import dataclass

from winnow.compaction.lines import INVISIBLE, closes, fence_of
from winnow.compaction.profiles.profile import Profile
from winnow.contracts.vocabulary import SegmentKind

#: Elements that models think in before they summarise.
_THINKING = ("analysis", "scratchpad", "thinking", "think")
_SUMMARY_OPEN, _SUMMARY_CLOSE = "<summary>", "</summary>"
#: Prefixes taken off one after the other. Hosts write two or three; without a limit a line of nothing but tags costs its square.
_MAX_PREFIXES = 16
#: Info strings of a fence around a whole summary.
_TEXT_INFO = frozenset({"", "markdown", "md", "text"})


@dataclass(slots=True, kw_only=True)
class Envelope:
    """Lines before and after the body. Joined, `head`, `body` and `tail` are the text; lines may be cut in two at a tag."""

    head: list[tuple[SegmentKind, str]]
    body: list[str]
    tail: list[tuple[SegmentKind, str]]
    warnings: list[str]


def open_envelope(lines: list[str], profile: Profile) -> Envelope:
    """Take off whatever stands before and after the summary proper."""
    head: list[tuple[SegmentKind, str]] = []
    tail: list[tuple[SegmentKind, str]] = []
    warnings: list[str] = []
    at = 0
    wrapped = False
    for _ in range(_MAX_PREFIXES):
        start = at
        while at < len(lines) and not lines[at].strip(INVISIBLE):
            at += 1
        if at == len(lines):
            at = start
            break
        end, kind = _prefix(lines, at, profile, warnings)
        if end == at:
            at = start  # the blank lines are the body's
            break
        if start < at:
            head.append((SegmentKind.BLANK, "".join(lines[start:at])))
        head.append((kind, "".join(lines[at:end])))
        wrapped = wrapped or head[-1][1].lstrip(INVISIBLE).startswith(_SUMMARY_OPEN)
        at = end
    stop = len(lines)
    if wrapped:
        stop = _close_summary(lines, at)
        if stop < len(lines):
            tail.append((SegmentKind.HOST, "".join(lines[stop:])))
    body = lines[at:stop]
    fenced = _unfence(body)
    if fenced:
        first, last = fenced
        head.append((SegmentKind.HOST, "".join(body[: first + 1])))
        tail.insert(0, (SegmentKind.HOST, "".join(body[last:])))
        body = body[first + 1 : last]
    return Envelope(head=head, body=body, tail=tail, warnings=warnings)


def _prefix(lines: list[str], at: int, profile: Profile, warnings: list[str]) -> tuple[int, SegmentKind]:
    """Return the end of the prefix that starts in line `at`, and its kind; `at` itself where there is none."""
    start = lines[at].lstrip(INVISIBLE)
    if start[0] == "<":
        return _tag(lines, at, start, warnings)
    label = start.rstrip(INVISIBLE)
    if label == "Summary:" or start.startswith(profile.prefixes):
        return at + 1, SegmentKind.HOST
    if label == "Analysis:":
        return next((n for n in range(at + 1, len(lines)) if lines[n].strip(INVISIBLE) == "Summary:"), at), SegmentKind.OUTSIDE
    if profile.prior_context and start.startswith(profile.prior_context[0]):
        return _prior_context(lines, at, profile.prior_context[1], warnings), SegmentKind.HOST
    return at, SegmentKind.HOST


def _prior_context(lines: list[str], at: int, delimiter: str, warnings: list[str]) -> int:
    for end in range(at, len(lines)):
        if lines[end].lstrip(INVISIBLE).startswith(delimiter):
            return end + 1
    warnings.append("prior_context_never_ends")
    return at


def _tag(lines: list[str], at: int, start: str, warnings: list[str]) -> tuple[int, SegmentKind]:
    if start.startswith(_SUMMARY_OPEN):
        _cut(lines, at, lines[at].find(_SUMMARY_OPEN) + len(_SUMMARY_OPEN))
        return at + 1, SegmentKind.HOST
    name = start[1 : max(start.find(">", 0, 16), 1)]
    if name not in _THINKING:
        return at, SegmentKind.HOST
    closing = f"</{name}>"
    for end in range(at, len(lines)):
        found = lines[end].find(closing)
        if found >= 0:
            _cut(lines, end, found + len(closing))
            return end + 1, SegmentKind.OUTSIDE
        if end > at and lines[end].lstrip(INVISIBLE).startswith(_SUMMARY_OPEN):
            return end, SegmentKind.OUTSIDE  # never closed, but the summary's own tag ends it
    warnings.append(f"never_closed:{name}")
    return at, SegmentKind.OUTSIDE


def _cut(lines: list[str], at: int, column: int) -> None:
    """Cut line `at` in two after `column` if something stands behind it."""
    line = lines[at]
    if line[column:].strip(INVISIBLE):
        lines[at : at + 1] = [line[:column], line[column:]]


def _close_summary(lines: list[str], at: int) -> int:
    """Return the first line of the tail: the last one that starts or ends with the closing tag, cut before it."""
    for end in range(len(lines) - 1, at - 1, -1):
        found = lines[end].rfind(_SUMMARY_CLOSE)
        if found < 0:
            continue
        before, after = lines[end][:found], lines[end][found + len(_SUMMARY_CLOSE) :]
        if not before.strip(INVISIBLE):
            return end
        if not after.strip(INVISIBLE + "."):
            lines[end : end + 1] = [before, lines[end][found:]]
            return end + 1
    return len(lines)


def _unfence(body: list[str]) -> tuple[int, int] | None:
    """Return opening and closing line of a fence around the whole body, as models put it around Markdown."""
    first = next((n for n, line in enumerate(body) if line.strip(INVISIBLE)), None)
    if first is None:
        return None
    opener = body[first].strip(INVISIBLE)
    if opener[0] not in "`~":
        return None
    fence = fence_of(opener)
    if fence is None or opener[len(fence) :].strip().lower() not in _TEXT_INFO:
        return None
    last = next(n for n in range(len(body) - 1, -1, -1) if body[n].strip(INVISIBLE))
    if last <= first + 1 or not closes(body[last], fence):
        return None
    inner = body[first + 1 : last]
    bare = opener == fence
    if bare and any(closes(line, fence) for line in inner):
        return None  # two fences, not one around all
    return (first, last) if any(line.lstrip(INVISIBLE).startswith("## ") for line in inner) else None
