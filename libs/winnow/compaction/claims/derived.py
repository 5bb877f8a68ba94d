"""Derived values: what follows from other values by computing or counting is no contradiction."""

import re
from collections.abc import Sequence
from itertools import accumulate, combinations, product
from typing import Final

from winnow.compaction.values import scaled_number

#: Operands that are combined, at most four at a time: with many numbers almost anything is a sum.
_OPERANDS: Final = 8
#: A sum or a value is multiplied by up to this: passengers, nights, copies.
_TIMES: Final = 9
#: A ten-thousandth is the unit of amounts (`scaled_number`).
_ONE: Final = 10_000
#: Share by which a rounded result may be off.
_ROUNDED: Final = 100
_UNDER_HUNDRED: Final = 100
_MILLION: Final = 1_000_000
_CHAIN: Final = re.compile(
    r"(?<![\w.+*/=-])((?:[$€£]?\d{1,12}(?:\.\d{1,6})?\s{0,3}[-+*x×−]\s{0,3}){1,8}[$€£]?\d{1,12}(?:\.\d{1,6})?)"
    r"\s{0,3}=\s{0,3}[$€£]?(\d{1,12}(?:\.\d{1,6})?)(?![\w%]|\s{0,3}[-+*x×])"
)
_RANGE: Final = re.compile(r"(?<![\w.:/-])(\d{3,9})([-:])(\d{3,9})(?![\w:/-]|\.\d)")
_RANGE_WORDS: Final = re.compile(r"\b(?:lines?|range|edit|rows?|pages?|bytes?|columns?)\b[^.;]{0,24}\Z")
_ONES: Final = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_TEENS: Final = f"{_ONES} seventeen eighteen nineteen".split()
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905  read more easily than a list


def number_word(number: int) -> str | None:
    """An English number below a hundred in words: "sixteen", "twenty-one"."""
    if not 0 <= number < _UNDER_HUNDRED:
        return None
    if number < len(_TEENS):
        return _TEENS[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_TEENS[ones]}" if ones else "")


def number_words(number: int) -> tuple[str, ...]:
    """A whole number from a hundred to below a million in English words, in its usual writings: "one hundred and twenty"."""
    if not _UNDER_HUNDRED <= number < _MILLION:
        return ()
    thousands, rest = divmod(number, 1_000)
    hundreds, rest = divmod(rest, _UNDER_HUNDRED)
    thousand = (number_word(thousands),) if thousands < _UNDER_HUNDRED else number_words(thousands)
    parts = [[f"{one} thousand" for one in thousand]] if thousands else []
    if hundreds:
        parts.append([f"{number_word(hundreds)} hundred"])
    if rest:
        parts.append([f"{number_word(rest)}", f"and {number_word(rest)}"])
    return tuple(" ".join(chosen) for chosen in product(*parts))


def reaches(number: int, numbers: Sequence[str]) -> bool:
    """Whether a number (in ten-thousandths) can be computed from `numbers`: the short ways first, which most are."""
    every = [scaled for one in numbers if (scaled := scaled_number(one)) is not None]
    parts = every[:_OPERANDS]
    pairs = {abs(total) for left, right in combinations(parts, 2) for total in (left + right, left - right)}
    if number in pairs or any(number == one * times for one in (*parts, *pairs) for times in range(2, _TIMES + 1)):
        return True
    if any(left * right == number * _ONE for left, right in combinations(parts, 2)):
        return True
    sums = list(accumulate(every[: 4 * _OPERANDS], initial=0))
    if any(high - low == number for low, high in combinations(sums, 2)):
        return True  # of a list that stands together
    return any(_signed(some, number) for terms in (3, 4) for some in combinations(parts, terms))


def is_share(percent: int, numbers: Sequence[str]) -> bool:
    """Whether a percentage (in ten-thousandths) is the share of one number of `numbers` in another, or by how much one exceeds it."""
    parts = [scaled for one in numbers if (scaled := scaled_number(one))][:_OPERANDS]
    shares = (top * 100 * _ONE // whole for whole in parts for part in parts if part != whole for top in (part, abs(part - whole)))
    return any(abs(share - percent) <= _ONE // 2 for share in shares)


def _signed(parts: Sequence[int], number: int) -> bool:
    """Whether the parts, each added or taken away, come to the number or its opposite."""
    totals = {parts[0]}
    for part in parts[1:]:
        totals = {total + sign for total in totals for sign in (part, -part)}
    return number in totals or -number in totals


def false_equation(text: str) -> tuple[str, str] | None:
    """The first equation of a text that does not hold, and what its left side gives; None where all hold. Rounding is forgiven."""
    if "=" not in text:
        return None
    for match in _CHAIN.finditer(text):
        before = text[: match.start()].rstrip(" $€£(`*")
        if before.endswith(("+", "-", "*", "x", "/", "=", ")")) or _goes_on(before):
            continue  # only the end of a longer left side
        given = scaled_number(match[2])
        total = _value(match[1])
        if given is not None and total is not None and abs(abs(total) - given) > max(_ONE // 2, given // _ROUNDED):
            return match.group(), f"{total / _ONE:g}"
    return None


def _goes_on(before: str) -> bool:
    """Whether the words before an equation add to it: "500 + gift cards 198 + 129 = 827"."""
    return re.search(r"[-+*/x=][a-z ]{1,40}\Z", before[-48:]) is not None


def _value(chain: str) -> int | None:
    """The value of a chain of sums and products, in ten-thousandths."""
    total, sign = 0, 1
    factor: int | None = None
    for part in re.findall(r"\d+(?:\.\d+)?|[-+*x×−]", chain):
        if part[0].isdigit():
            scaled = scaled_number(part)
            if scaled is None:
                return None
            factor = scaled if factor is None else factor * scaled // _ONE
        elif part in "+-−":
            total, factor, sign = total + sign * (factor or 0), None, 1 if part == "+" else -1
    return total + sign * (factor or 0)


def backward_range(text: str) -> str | None:
    """A range of lines, bytes or pages that runs backwards ("lines 989-415"); None where there is none."""
    ranges = [match for match in _RANGE.finditer(text) if len(match[1]) == len(match[3])]
    for match in ranges:
        if match[1] <= match[3]:
            continue
        named = _RANGE_WORDS.search(text[max(0, match.start() - 40) : match.start()]) is not None
        if named or (match[2] == "-" and any(other[1] < other[3] for other in ranges if other is not match)):
            return match.group()
    return None


def ranges(text: str) -> list[tuple[int, int]]:
    """The ranges of whole numbers in a text."""
    return [(int(match[1]), int(match[3])) for match in _RANGE.finditer(text)] if "-" in text or ":" in text else []
