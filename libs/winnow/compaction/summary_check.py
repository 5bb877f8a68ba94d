"""Texts that stand where a summary should: nothing, an error, a tool call, a refusal, a loop (T31).

Precision comes first: a summary that quotes an error, or shows markup in a fence, is a summary.
"""

import re
from collections import Counter
from typing import Final

from winnow.compaction.lines import INVISIBLE, closes, fence_of, marker
from winnow.compaction.placeholders import MAX_PLACEHOLDER, is_placeholder
from winnow.contracts.vocabulary import Reason

#: Whole texts that hosts store when they have no summary; lower case, without the final stop.
_STORED: Final = frozenset(
    {
        "no previous conversation history",
        "previous conversation was too long to summarize",
        "(no summary available)",
        "no summary available",
    }
)
#: Starts that only an error has, whatever follows: an exception's text may run over many lines, lists included.
_ERRORS: Final = (
    "error generating summary",
    "error: failed to generate summary",
    "failed to generate summary",
    "traceback (most recent call last)",
)
#: Starts that an error has when nothing of a summary follows.
_LIKELY_ERRORS: Final = (
    "error:",
    "api error",
    "error code:",
    "internal server error",
    "request failed",
    '{"error"',
    '{"type":"error"',
    '{"type": "error"',
)
#: Starts of lines in the call syntaxes that models fall into.
_TOOL_MARKUP: Final = (
    "<tool_call",
    "<function=",
    "<function_call",
    "<invoke ",
    "<tool_use",
    "<|tool_call",
    "<|python_tag|>",
    "<｜tool▁call",  # noqa: RUF001 # the model's own signs
    "[TOOL_CALLS]",
    '{"tool_calls"',
)
#: One of them is in each of these.
_TOOL_SIGNS: Final = ("<", "[TOOL", '{"tool')
#: The host's own wording of a refusal, anywhere in a short text.
_POLICY: Final = ("unable to respond to this request, which appears to violate", "violates our usage policy", "violate our usage policy")
#: An excuse, "I cannot", and what is refused right after it: "I cannot reproduce the bug" is no refusal.
_REFUSAL: Final = re.compile(
    r"(?:(?:i'm|i am) (?:very |so |really )?sorry[,.]? ?(?:but )?|sorry[,.]? (?:but )?|i apologi[sz]e[,.]? ?(?:but )?|unfortunately,? )?"
    r"(?:as an ai[^.,]{0,60}, ?)?"
    r"i(?: can't| cannot| can not|'m unable to| am unable to|'m not able to| am not able to| won't| will not) "
    r"(?:assist|help|comply|fulfil|summari[sz]e|engage|(?:provide|create|generate|produce|write) (?:a|the|this|that) summary"
    r"|(?:process|respond to|complete|continue with|continue) (?:this|that|the) (?:request|conversation))"
)
#: Characters; a refusal or an error page that goes on longer has something to say.
_MAX_SHORT: Final = 2_000
#: Characters of the start that phrases are looked for in.
_START: Final = 400
#: Headings, and headings with list items, from which on a text has the structure of a summary.
_HEADINGS, _STRUCTURE = 2, 3
#: List items before the first call that make it a summary with a call behind it.
_ITEMS_BEFORE_CALL: Final = 6
#: Lines from which on equal lines can be a loop; fewer may be a list.
_MIN_LOOP_LINES: Final = 60
#: Share of the lines, in tenths, that must be one and the same line; and that different lines may make up at most.
_SAME_TENTHS, _DIFFERENT_TENTHS = 6, 1
#: Characters at the end that must repeat exactly, and the longest period that is looked for.
_LOOP_TAIL, _LOOP_PERIOD = 2_048, 512


def check(body: str, lines: list[str], *, headings: int, items: int) -> Reason | None:  # noqa: PLR0911 # verdicts in order, the first that holds
    """Return why `body`, the text without what hosts put around it, is no summary; None where it is one.

    `lines` are its lines; `headings` and `items` (bullets, rows, labels) were counted outside fences.
    """
    core = body.strip(INVISIBLE)
    if not core:
        return Reason.EMPTY
    if len(core) <= MAX_PLACEHOLDER and (is_placeholder(core) or core.rstrip(".").lower() in _STORED):
        return Reason.PLACEHOLDER
    if _loops(core, lines):
        return Reason.LOOP
    start = core[:_START].lower().replace("’", "'")
    if start.startswith(_ERRORS) and headings < _HEADINGS:
        return Reason.ERROR_TEXT
    if any(sign in core for sign in _TOOL_SIGNS) and any(markup in core for markup in _TOOL_MARKUP) and _calls(lines):
        return Reason.TOOL_CALL
    if len(core) > _MAX_SHORT or headings >= _HEADINGS:
        return None
    lowered = core.lower()
    if _REFUSAL.match(start) or any(phrase in lowered for phrase in _POLICY):
        return Reason.REFUSAL
    return Reason.ERROR_TEXT if start.startswith(_LIKELY_ERRORS) and headings + items < _STRUCTURE else None


def _calls(lines: list[str]) -> bool:
    """Tell whether call markup starts a line outside fences before anything that looks like a summary."""
    fence: str | None = None
    headings = items = 0
    for line in lines:
        if fence is not None:
            fence = None if closes(line, fence) else fence
            continue
        body = line.lstrip(INVISIBLE)
        if not body or len(line) - len(body) > 3:  # noqa: PLR2004 # columns; deeper lines belong to a list item or are code
            continue
        if body.startswith(_TOOL_MARKUP):
            return headings < _HEADINGS and items < _ITEMS_BEFORE_CALL
        if body[0] == "#":
            headings += 1
        elif body[0] in "`~":
            fence = fence_of(body)
        elif marker(body) is not None:
            items += 1
    return False


def _loops(core: str, lines: list[str]) -> bool:
    """Tell whether the text repeats itself: one line mostly, few lines over and over, or an exact period up to its end."""
    if len(lines) >= _MIN_LOOP_LINES:
        filled = [line for line in map(str.strip, lines) if line]
        different = len(set(filled))
        if len(filled) >= _MIN_LOOP_LINES and different * 2 < len(filled):
            _, most = Counter(filled).most_common(1)[0]
            if different * 10 <= len(filled) * _DIFFERENT_TENTHS or most * 10 >= len(filled) * _SAME_TENTHS:
                return True
    if len(core) < 2 * _LOOP_TAIL:
        return False
    tail = core[-_LOOP_TAIL:]
    at = tail.rfind(tail[-_LOOP_PERIOD:], 0, _LOOP_TAIL - 1)
    if at < 0:
        return False
    period = _LOOP_TAIL - _LOOP_PERIOD - at
    half = len(core) // 2
    return core[-half:-period] == core[-half + period :]
