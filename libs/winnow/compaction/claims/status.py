"""Statuses: a claim that tests, builds or commands succeeded, and counts of outcomes, against what the last run said.

Only claims in plain words ("all tests pass", "0 failed", "[x] fix the failing tests") and only against an output that states an outcome.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import count, takewhile
from typing import Final, NamedTuple

from winnow.compaction.segments import Entry

#: Characters of an entry, and of the end of an output, in which an outcome is stated.
_CHARS: Final = 600
_TAIL_CHARS: Final = 4_000
#: Words without one of which an entry claims no outcome.
_HINTS: Final = ("test", "pass", "fail", "build", "succe", "green", "error", "exit")
_SUCCESS: Final = re.compile(
    r"\b(?:(?:all|every|the|full|whole)\s(?:[\w-]{1,20}\s){0,3}?)?(?:tests?|test suite|suite|checks?|specs?)\s(?:[\w-]{1,12}\s){0,2}?"
    r"(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|(?:is|are|were)\sgreen)\b"
    r"|\b(?:build|compilation)\s(?:now\s)?(?:passes|passed|succeeds|succeeded|is\sgreen)\b"
)
_FIXED: Final = re.compile(r"\bfix(?:ed)?\b[^.;]{0,40}\b(?:tests?|build)\b")
#: Words that make it no claim: a wish, a condition, a plan, a history.
_NO_CLAIM: Final = re.compile(
    r"\b(?:should|must|until|if|when|once|whether|ensure|make sure|so that|verify|confirm|check that|expect\w*|not|no longer|n't|before|"
    r"previously|initially|earlier|first|some|only|most|will|would|need|needs|to)\b|n't\b"
)
_COUNTED: Final = re.compile(r"\b(\d{1,6}) (?:tests? )?(failed|failures?|errors?|passed|passing|skipped)\b")
#: What a run says at its end.
_OUTCOME: Final = re.compile(
    r"\b\d{1,6} (?:tests? )?(?:failed|failures?|errors?|passed|passing)\b"
    r"|\b(?:tests?|build) (?:failed|succeeded|passed)\b|^(?:ok|failed)\b",
    re.MULTILINE,
)
#: Beginnings one of which every outcome holds, unless the text begins with one: looked for first, because most outputs state none.
_OUTCOMES: Final = (" fail", " error", " pass", " succe", "\nok", "\nfailed")
_FAILURE: Final = re.compile(
    r"\b[1-9]\d{0,5} (?:tests? )?(?:failed|failures?|errors?)\b|\b(?:tests?|build) failed\b|^failed\b[^\n]{0,60}", re.MULTILINE
)
#: What tells a run of tests from one of a compiler or a linter, whose "3 errors" say nothing of tests, and the other way round.
_TESTED: Final = re.compile(r"\b(?:tests?|suites?|specs?|passed|passing|failed|failures?)\b")
_BUILT: Final = re.compile(r"\b(?:build|compil\w{1,8})\b")
_SAME: Final = {"failures": "failed", "failure": "failed", "errors": "error", "passing": "passed"}


class Disproved(NamedTuple):
    """A claimed outcome that the last run does not show."""

    entry: int
    claim: str
    said: str
    output: int  # position of the message


def disproved(entries: Sequence[Entry], outputs: Sequence[tuple[int, str]]) -> Iterator[Disproved]:
    """Yield the entries whose claimed outcome the last output that states one contradicts; `outputs` by position, in order."""
    claims = [(number, text) for number, entry in enumerate(entries) if (text := _claim(entry)) is not None]
    if not claims:
        return
    ran = _Ran(outputs)
    if not ran.has(0):
        return
    at, tail = ran.found[0]
    stated = _counts(tail)
    everything = [_counts(text[-_TAIL_CHARS:].lower()) for _, text in outputs] if any(_COUNTED.search(text) for _, text in claims) else []
    for number, text in claims:
        success = _SUCCESS.search(text) or (_FIXED.search(text) if _checked(entries[number]) else None)
        failed = None if success is None else _failed(success.group(), text, ran)
        if success is not None and failed is not None:
            yield Disproved(number, success.group(), *failed)
            continue
        for outcome, claimed in _counts(text).items():
            other = stated.get(outcome)
            if other is not None and other != claimed and all(counts.get(outcome) != claimed for counts in everything):
                yield Disproved(number, f"{claimed} {outcome}", f"{other} {outcome}", at)
                break


class _Ran:
    """The outputs that state an outcome, the last ones first, with their ends in lower case; read as far as is asked."""

    def __init__(self, outputs: Sequence[tuple[int, str]]) -> None:
        """Read from outputs by position, in order."""
        self.found: list[tuple[int, str]] = []
        self._left = reversed(outputs)

    def has(self, number: int) -> bool:
        """Whether there are more than so many of them."""
        while len(self.found) <= number:
            for at, text in self._left:
                if _states_outcome(tail := text[-_TAIL_CHARS:].lower()):
                    self.found.append((at, tail))
                    break
            else:
                return False
        return True

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """All of them."""
        return (self.found[number] for number in takewhile(self.has, count()))


def _failed(success: str, text: str, ran: _Ran) -> tuple[str, int] | None:
    """The failure that the last run of what is said to succeed shows, and its output; None where it shows none, or the entry says it."""
    built = _BUILT.search(success) is not None and "test" not in success
    for at, tail in ran:
        if built and _TESTED.search(tail) and not _BUILT.search(tail):
            return None  # what is tested was built
        if built or "check" in success or _TESTED.search(tail):
            failures = (match.group() for match in _FAILURE.finditer(tail))
            failure = next((one for one in failures if not built or "error" in one or "build" in one), None)
            return None if failure is None or failure in text else (failure, at)
    return None


def _claim(entry: Entry) -> str | None:
    """An entry in lower case, if it could claim an outcome; None where it is open work or claims none."""
    head = entry.text[:_CHARS].lower()
    if not any(hint in head for hint in _HINTS) or "[ ]" in head[:12] or _NO_CLAIM.search(head):
        return None
    return head if _SUCCESS.search(head) or _COUNTED.search(head) or _FIXED.search(head) else None


def _states_outcome(tail: str) -> bool:
    """Whether the end of an output, in lower case, says what came of a run."""
    return (tail.startswith(("ok", "failed")) or any(sign in tail for sign in _OUTCOMES)) and _OUTCOME.search(tail) is not None


def _checked(entry: Entry) -> bool:
    """Whether it is a checked box."""
    return "[x]" in entry.text.lstrip()[:12].lower()


def _counts(text: str) -> dict[str, int]:
    """The last count of each outcome that a text states."""
    return {_SAME.get(outcome, outcome): int(count) for count, outcome in _COUNTED.findall(text)}
