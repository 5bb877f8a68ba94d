"""Properties: what an entry says of a key in a word ("status: closed", "branch is `main`") against what a record's field says of it.

Numbers are bound by `binding`; words have no kind by which they could be compared, so here the key must be named, by entry and output
alike. Of a key that had several values over time the latest one counts.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from string import ascii_lowercase
from typing import Final, NamedTuple

from winnow.compaction.claims.records import stems_of
from winnow.compaction.corpus import Corpus
from winnow.compaction.roles import Role
from winnow.compaction.text import STOP_WORDS, word_set

#: Characters of an entry in which a property is claimed, claims of one boundary that are looked at, and subjects of an entry.
_CHARS: Final = 600
_CLAIMS: Final = 64
_SUBJECTS: Final = 12
#: Standings of one key that are read, the last ones; places of the key that are tried for them; and characters on each side of one that
#: belong to its record at most.
_STANDINGS: Final = 100
_TRIED: Final = 2_000
_AROUND: Final = 1_500
#: Characters on each side of a key in which somebody may give it a value.
_NEAR: Final = 40
_BRACES: Final = re.compile(r"[{}]")
#: A word as a key, read without going back: a word that is none costs one try.
_KEY: Final = r"[a-z][a-z_]{2,30}+"
_WORD_KEY: Final = re.compile(_KEY)
#: A word as a value: `basic_economy`, `feature/login`, `db-2.internal`.
_WORD: Final = r"[a-z][\w./-]{0,60}"
CLAIM: Final = re.compile(rf"(?<![\w./-])({_KEY})(?: ?[:=] ?| is (?:now |still |currently |set to )?)[`\"']?({_WORD})[`\"']?(?![\w(\[{{])")
#: What parts a key from its value, and the signs of a key.
_SEPARATOR: Final = re.compile(" is | ?[:=]")
_KEY_SIGNS: Final = f"{ascii_lowercase}_"
#: What stands behind the beginning of a key of an output: its rest, its separator and its value in a word.
_FIELD: Final = re.compile(rf"([a-z_]{{0,24}})[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"'`]?({_WORD})(?=[\"'`,;}}\]\s]|\Z)")
#: Letters of a key that must agree where it stands beside a grade: `membership` is what makes a member.
_PREFIX: Final = 6
#: Words that make it no statement of how things are now.
_NOT_NOW: Final = re.compile(
    r"\b(?:was|were|until|before|previous\w*|earlier|initial\w*|original\w*|old|new|used to|from|change\w*|set|switch\w*|make|should|must|"
    r"if|unless|when|whether|not|no longer|never|or|want\w*|wish\w*|ask\w*|request\w*|need\w*|expect\w*|will|would|e\.g|either|any|other)\b"
    r"|n't\b|->|→|\[ \]"
)
#: Words that can take a value's place behind "is" and ":" without being one.
_NO_VALUES: Final = word_set(
    "a an the this that these those it its in on at to of for by with as and not no so now also only same very being been done known "
    "needed required given used found set available possible see none null unknown there here what which where how why still yet"
)
#: Values that exclude each other, whatever the key: one of them is known to be a value where the other one is.
_OPPOSITES: Final = tuple(
    word_set(group)
    for group in (
        "open closed merged resolved reopened wontfix",
        "active inactive suspended cancelled canceled expired pending confirmed completed delivered shipped processed",
        "enabled disabled",
        "true false",
        "yes no",
        "running stopped paused exited crashed",
        "passed failed skipped success failure succeeded error",
        "public private internal",
        "online offline",
        "up down",
        "paid unpaid refunded",
        "gold silver bronze regular platinum",
        "economy business basic_economy first premium_economy",
        "low medium high critical",
        "debug info warning error",
        "staging production development",
    )
)
_GRADES: Final = frozenset().union(*_OPPOSITES)
#: Words before a grade that deny it.
_NONE: Final = frozenset({"no", "non", "without"})
#: Punctuation at a word's ends.
_EDGES: Final = ",;:.()`\"'"
#: Keys whose values are names: a name that nobody else says in their place is another one, known or not.
_NAMED: Final = word_set(
    "branch host hostname owner author assignee user username database db bucket region namespace cluster repo repository"
)
#: Something that tells one record from another: letters and digits, snake_case, a path.
_SUBJECT: Final = re.compile(r"(?<![\w./-])(?=[\w./-]*[\d_/])[a-z0-9#$][\w./-]{2,80}")


#: A word by which an entry without a subject tells what it is about.
_ABOUT: Final = re.compile(r"(?<![\w./-])[a-z]{4,30}(?![\w/])")


class Misstated(NamedTuple):
    """A property that the latest output gives another value."""

    entry: int
    key: str
    claim: str
    said: str
    output: int  # position of the message
    at: int  # where its text says so


class _Claim(NamedTuple):
    """A key and a value of an entry."""

    entry: int
    key: str
    value: str
    others: str  # the entry without them
    #: Key and value are parted by ":", "=" or "is": then the output's key is the same word, and the value may be any that it has. Else the
    #: key is the beginning of one.
    stated: bool


class _Standing(NamedTuple):
    """A field of an output."""

    output: int  # index among the outputs
    at: int
    rest: str  # of the key, behind its beginning
    value: str


def misstated(
    lowered: Sequence[str], chosen: Sequence[bool], corpus: Corpus, lower: Callable[[str], str] = str.lower
) -> Iterator[Misstated]:
    """Yield the properties that outputs give another value.

    An entry is compared with the records that hold half of its subjects, or all of them where an older record agrees with the entry; one
    that names none, with those that hold one of its other words, and only where the key has one value there.
    What the agent or a user says after the output is no mistake: they may have changed it.

    Args:
        lowered: texts of the entries in lower case, normalised and without marker.
        chosen: of each entry whether it tells what to do: there a value is wished for.
        corpus: the boundary's texts.
        lower: gives a text in lower case; the caller may remember it.
    """
    claims = [claim for entry, text in enumerate(lowered) if not chosen[entry] for claim in _claims(entry, text)][:_CLAIMS]
    if not claims:
        return
    texts = [lower(output.text) for output in corpus.outputs]
    standings = {key: _standings(key, texts) for key in {claim.key for claim in claims}}
    for claim in claims:
        found = _against(claim, standings[claim.key], texts, corpus)
        if found is not None:
            yield found


def _claims(entry: int, text: str) -> Iterator[_Claim]:
    """What an entry says of keys in the present."""
    head = text[:_CHARS]
    claims = [
        _Claim(entry, match[1], match[2].rstrip("."), f"{head[: match.start()]} {head[match.end() :]}", stated=True)
        for match in stated(head)
    ]
    words = head.split()
    bare = [word.strip(_EDGES) for word in words]
    if not _GRADES.isdisjoint(bare):
        claims += _graded(entry, words, bare)
    if claims and _NOT_NOW.search(head) is None:
        yield from (claim for claim in claims if claim.value not in _NO_VALUES and claim.value != claim.key)


def stated(head: str) -> Iterator[re.Match[str]]:
    """The matches of `CLAIM` from left to right: tried only where a separator stands, with the whole word before it for a key."""
    done = 0
    for part in _SEPARATOR.finditer(head) if _parts(head) else ():
        start = len(head[: part.start()].rstrip(_KEY_SIGNS))
        match = CLAIM.match(head, start) if start >= done else None
        if match is not None:
            yield match
            done = match.end()


def _graded(entry: int, words: Sequence[str], bare: Sequence[str]) -> Iterator[_Claim]:
    """Grades that stand beside a key with nothing in between: "insurance no", "a gold member"."""
    for at, grade in enumerate(bare):
        if grade in _GRADES and not (at and bare[at - 1] in _NONE):
            for left, key in ((at - 1, at - 1), (at, at + 1)):
                if 0 <= key < len(words) and words[left][-1] not in _EDGES and _WORD_KEY.fullmatch(bare[key]):
                    others = (word for number, word in enumerate(words) if number not in {at, key})
                    yield _Claim(entry, bare[key][:_PREFIX], grade, " ".join(others), stated=False)


def _parts(head: str) -> bool:
    """Whether anything in a text can part a key from its value."""
    return ":" in head or "=" in head or " is " in head


def _standings(key: str, texts: Sequence[str]) -> list[_Standing]:
    """Where outputs give a key a value in a word; the last ones, in order."""
    found: list[_Standing] = []
    room = _TRIED
    for number in range(len(texts) - 1, -1, -1):
        text = texts[number]
        at = text.rfind(key)
        while at >= 0 and room > 0 and len(found) < _STANDINGS:
            room -= 1
            end = at + len(key)
            field = None if at and (text[at - 1].isalnum() or text[at - 1] == "_") else _FIELD.match(text, end)
            if field is not None:
                found.append(_Standing(number, field.start(2), field[1], field[2].rstrip(".")))
            at = text.rfind(key, 0, at)
    return found[::-1]


def _record(text: str, at: int) -> str:
    """The object, or else the line, that a place belongs to."""
    low, high = max(0, at - _AROUND), at + _AROUND
    begin, end = _brace(text[low:at][::-1], "}"), _brace(text[at:high], "{")
    if begin >= 0 and end >= 0:
        return text[at - begin : at + end]
    begin, end = text.rfind("\n", low, at), text.find("\n", at, high)
    return text[begin + 1 if begin >= 0 else low : end if end >= 0 else high]


def _brace(text: str, other: str) -> int:
    """Where the first brace stands that closes what `text` begins in, `other` being the brace that opens; -1 where there is none."""
    depth = 0
    for match in _BRACES.finditer(text):
        depth += 1 if match.group() == other else -1
        if depth < 0:
            return match.start()
    return -1


def _against(claim: _Claim, standings: Sequence[_Standing], texts: Sequence[str], corpus: Corpus) -> Misstated | None:
    """The latest field that speaks against a claim; None where none does, or where it is not certain whose field it is."""
    named = [one for one in standings if not (claim.stated and one.rest)]
    if not _may_be(claim, {one.value for one in named}):
        return None
    subjects = frozenset(match.group().rstrip(".") for match in islice(_SUBJECT.finditer(claim.others), _SUBJECTS))
    if subjects:
        own = [one for one in named if _holds(_record(texts[one.output], one.at), subjects)]
    else:
        # A grade of anything may stand in any record; a branch or an owner tells itself what it is of.
        about = frozenset(word[:_PREFIX] for word in _ABOUT.findall(claim.others) if word not in STOP_WORDS)
        own = [
            one for one in named if not about or claim.key in _NAMED or any(word in _record(texts[one.output], one.at) for word in about)
        ]
    if not own:
        return None
    last = [one for one in own if one.output == own[-1].output]
    values = {one.value for one in (last if subjects else own)}
    if len(values) != 1 or _same(claim.value, last[-1].value):
        return None
    outdated = any(_same(claim.value, one.value) for one in own)
    if outdated and not all(subject in _record(texts[last[-1].output], last[-1].at) for subject in subjects):
        return None  # it may be the older record's answer to another question: the same flight on another day
    # "On branch feature/login" names it too, and a `branch: main` of a configuration is another branch's.
    elsewhere = claim.key in _NAMED and claim.value not in {one.value for one in named} and _is_said(claim.value, corpus)
    latest = corpus.outputs[last[-1].output]
    if elsewhere or _said_after(claim, latest.message, corpus):
        return None
    return Misstated(claim.entry, claim.key + last[-1].rest, claim.value, last[-1].value, latest.message, last[-1].at)


def _same(left: str, right: str) -> bool:
    """Whether two values say the same: equal stems, or one the beginning or end of the other."""
    short, long = sorted((left, right), key=len)
    return long.startswith(short) or long.endswith(short) or (stems_of(left) == stems_of(right) != ())


def _holds(record: str, subjects: frozenset[str]) -> bool:
    """Whether a record is about what an entry is about: it holds half of the entry's subjects."""
    return 2 * sum(subject in record for subject in subjects) >= len(subjects)


def _may_be(claim: _Claim, known: set[str]) -> bool:
    """Whether the claimed word is a value of its key at all: outputs give the key that value, or one that excludes it, or any name."""
    if claim.stated and (claim.value in known or (claim.key in _NAMED and known)):
        return True
    return any(claim.value in group and not group.isdisjoint(known) for group in _OPPOSITES)


def _is_said(name: str, corpus: Corpus) -> bool:
    """Whether anybody but the agent says a name, as a word of its own."""
    pieces = corpus.pieces
    found = re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", pieces.joined)
    return any(pieces.role[bisect_right(pieces.begin, match.start()) - 1] is not Role.AGENT for match in found)


def _said_after(claim: _Claim, message: int, corpus: Corpus) -> bool:
    """Whether the agent or a user says the value near the key behind a message: then it may have been changed since."""
    pieces = corpus.pieces
    for number in range(pieces.of_task, pieces.first_unit):
        if pieces.order[number] > message:
            at, end = pieces.joined.find(claim.key, pieces.begin[number], pieces.end[number]), pieces.end[number]
            while at >= 0:
                if claim.value in pieces.joined[max(pieces.begin[number], at - _NEAR) : min(end, at + len(claim.key) + _NEAR)]:
                    return True
                at = pieces.joined.find(claim.key, at + _NEAR, end)
    return False
