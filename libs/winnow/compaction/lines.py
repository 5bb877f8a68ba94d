"""Lines of a summary: how they are cut, and what the first characters of a line say.

Everything here is one pass over its argument: string methods, and patterns without a quantified group.
"""

import io
import re

#: White space, and characters that show nothing, that may stand before a line's first sign (T27); NUL among them.
INVISIBLE = " \t\r\n\x00\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\u3000\ufeff"  # noqa: E501 # one set
#: Columns of a tab stop, as in CommonMark.
TAB = 4
#: Signs that open a bullet by themselves.
BULLET_SIGNS = frozenset("-*+•–—→·◦▪‣●✅❌")
#: Whatever a bullet line can start with, apart from a lower-case letter (`a.`), which needs a look at the second sign.
MARKER_STARTS = BULLET_SIGNS | frozenset("0123456789(")
#: Above this a number at a line's start is a year or a count unless a list is already open ("2024. The ...").
MAX_OPENING_NUMBER = 999
#: Characters; a line that ends in a colon and is longer than this is a sentence, not a lead-in between two lists.
MAX_LEAD_IN = 80
#: Characters; truncation markers of hosts are shorter, entries that quote one are not a marker.
MAX_TRUNCATION_MARKER = 200

_OTHER_BREAKS = ("\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
_SPACE = "[ \\t\\xa0\\u3000]"
_MARKER = re.compile(rf"(?:(?:(\d{{1,9}})[.)]|[-*+–—→·◦▪‣●]|\(\d{{1,3}}\)|\([a-z]\)|[a-z][.)]){_SPACE}+|[•✅❌]\ufe0f?{_SPACE}*)(?=\S)")

#: Match the bullet marker that a line without its indentation starts with; group 1 is a plain number. For a line whose first sign is in
#: MARKER_STARTS, or whose second is `.` or `)`; others have none.
match_marker = _MARKER.match


def split_lines(text: str) -> list[str]:
    r"""Cut `text` after each `\n`, `\r\n` and lone `\r`, and nowhere else; joined, the lines are `text`."""
    # str.splitlines also cuts at form feeds, separators and U+2028; without them it is five times as fast as the general way.
    if any(sign in text for sign in _OTHER_BREAKS):
        return io.StringIO(text, newline="").readlines()
    return text.splitlines(keepends=True)


def indent_of(lead: str) -> int:
    """Return the columns that the white space `lead` takes; signs without width take none."""
    if not lead.strip(" "):
        return len(lead)
    return len("".join(sign for sign in lead if sign in " \t\xa0\u3000").expandtabs(TAB))


def marker(body: str) -> re.Match[str] | None:
    """Match the bullet marker of any line, None where it has none."""
    sign = body[0]
    if sign in MARKER_STARTS or (body[1:2] in {".", ")"} and "a" <= sign <= "z"):
        return _MARKER.match(body)
    return None


def is_rule(body: str) -> bool:
    """Tell whether the line is a thematic break: three or more of `-`, `*` or `_`, spaces between them allowed."""
    sign = body[0]
    return (
        sign in "-*_"
        and body[1:2] in {sign, " "}
        and body[2:3] in {sign, " "}
        and not body.strip(sign + INVISIBLE)
        and body.count(sign, 0, 64) >= 3  # noqa: PLR2004 # CommonMark's number
    )


def is_underline(body: str) -> int:
    """Return the heading level (1, 2) that a setext underline gives the line above it, else 0."""
    sign = body[0]
    if sign not in "=-" or not body.startswith(sign * 3) or body.rstrip(INVISIBLE).strip(sign):
        return 0
    return 1 if sign == "=" else 2


def fence_of(body: str) -> str | None:
    """Return the fence that opens here (its run of backticks or tildes), or None. A fence of backticks has none after it."""
    sign = body[0]
    if sign not in "`~" or not body.startswith(sign * 3):
        return None
    rest = body.lstrip(sign)
    return None if sign == "`" and "`" in rest else body[: len(body) - len(rest)]


def closes(line: str, fence: str) -> bool:
    """Tell whether `line` closes `fence`: the same sign, at least as often, and nothing else."""
    if fence not in line:
        return False
    run = line.strip(INVISIBLE)
    return run.startswith(fence) and not run.strip(fence[0])


def is_separator(line: str) -> bool:
    """Tell whether `line` is the row of dashes under a table's header."""
    return "-" in line and "|" in line and not line.strip("|-:" + INVISIBLE)


def is_truncation_marker(body: str) -> bool:
    """Tell whether the whole line is a host's note that text was cut here."""
    mark = body.rstrip(INVISIBLE)
    return (
        len(mark) <= MAX_TRUNCATION_MARKER
        and mark.startswith(("[", "(", "…", "..."))
        and mark.endswith(("]", ")", "…", "..."))
        and "truncated" in mark.lower()
    )


def quotes_truncation(text: str) -> bool:
    """Tell whether a truncation marker stands inside `text`: the word inside brackets, or beside an ellipsis."""
    at = text.find("truncated")
    for _ in range(32):  # occurrences looked at; more of them say nothing new
        if at < 0:
            return False
        before, after = text[max(0, at - MAX_TRUNCATION_MARKER) : at], text[at : at + MAX_TRUNCATION_MARKER]
        if before.rfind("[") > before.rfind("]") and "]" in after:
            return True
        if before.rstrip().endswith(("…", "...", "…[", "...[")) or after[len("truncated") :].lstrip().startswith(("…", "...")):
            return True
        at = text.find("truncated", at + 1)
    return False


def ends_with_colon(text: str) -> bool:
    """Tell whether `text` introduces what follows it."""
    return text[-64:].rstrip(INVISIBLE).endswith((":", "\uff1a", ":**", ":__"))


def is_bold_line(body: str) -> bool:
    """Tell whether the whole line is one bold phrase, with or without a colon: a heading in all but name."""
    if not body.startswith(("**", "__")):
        return False
    line = body.rstrip(INVISIBLE).removesuffix(":")
    sign = body[:2]
    return len(sign) * 2 < len(line) <= MAX_TRUNCATION_MARKER and line.endswith(sign) and sign not in line[2:-2]
