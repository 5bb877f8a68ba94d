"""Quotations: what an entry quotes word for word, but for one number, is said with another number."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

#: What stands in quotation marks or backticks, on one line; quotations of one entry that are looked at.
_QUOTED: Final = re.compile(r"\"([^\"\n]{12,240})\"|`([^`\n]{12,240})`")
_PER_ENTRY: Final = 6
#: A number that is a word of its own, of two digits at least: those of names and paths are names.
_NUMBER: Final = re.compile(r"(?<![\w.,/#-])[0-9](?:[0-9]|[.,][0-9])+(?![\w/]|[.,-][0-9])")
_ANY_NUMBER: Final = r"([0-9](?:[0-9]|[.,][0-9])*)"
#: Words that a quotation must have besides: fewer come again everywhere.
_WORD: Final = re.compile(r"[a-z_]{2,}")
_WORDS: Final = 3
#: Standings of a quotation's longest part that are compared.
_TRIED: Final = 32
#: Characters by which the numbers of a standing may be longer.
_LONGER: Final = 24
#: Words of an entry that quotes what shall be written rather than what was.
_PLANNED: Final = re.compile(r"\b(?:plan\w*|should|must|will|would|could|change\w*|set|replace\w*|instead|use|to be|need\w*|try)\b|->|→")


class Misquoted(NamedTuple):
    """A number of a quotation that has another one in its place."""

    entry: int
    claim: str
    said: str
    at: int  # where the other one stands in the sources' text


def misquoted(lowered: Sequence[str], chosen: Sequence[bool], said: str, sources_at: int) -> Iterator[Misquoted]:
    """Yield the numbers that are quoted wrongly.

    Only where nobody says the quotation as it stands, and outputs or M say it with one other number. An entry that tells what to do, or
    what shall be written, quotes what is still to come. Linear in the texts' length.

    Args:
        lowered: texts of the entries, in lower case, normalised.
        chosen: of each entry whether it tells what to do.
        said: all texts of the boundary as they are matched.
        sources_at: where M and the outputs begin in it.
    """
    for entry, text in enumerate(lowered):
        if chosen[entry] or ('"' not in text and "`" not in text):
            continue
        for quoted in islice(_QUOTED.finditer(text), _PER_ENTRY):
            quotation = quoted[1] or quoted[2]
            numbers = list(_NUMBER.finditer(quotation))
            if not numbers or len(_WORD.findall(quotation)) < _WORDS or (quoted[2] and _PLANNED.search(text)):
                continue
            if quotation not in said and (other := _otherwise(quotation, numbers, said, sources_at)) is not None:
                yield Misquoted(entry, *other)


def _otherwise(quotation: str, numbers: Sequence[re.Match[str]], said: str, sources_at: int) -> tuple[str, str, int] | None:
    """The one number of a quotation that sources have another one for, that one, and where; None where they do not say it so."""
    edges = [0, *(edge for number in numbers for edge in number.span()), len(quotation)]
    parts = [quotation[edges[at] : edges[at + 1]] for at in range(0, len(edges), 2)]
    longest = max(parts, key=len)
    pattern = re.compile(_ANY_NUMBER.join(map(re.escape, parts)))
    at = said.find(longest, sources_at)
    for _ in range(_TRIED):
        if at < 0:
            return None
        low = max(sources_at, at - len(quotation) - _LONGER)
        found = pattern.search(said, low, at + len(quotation) + _LONGER)
        if found is not None:
            wrong = [place for place, number in enumerate(numbers) if found[place + 1].rstrip(".,") != number.group()]
            if len(wrong) == 1:
                place = wrong[0]
                return numbers[place].group(), found[place + 1], found.start(place + 1)
        at = said.find(longest, at + 1)
    return None
