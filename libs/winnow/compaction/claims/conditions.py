"""Conditions: an entry that restates a condition of the task or of a user with another action, amount, recipient or scope. A flag only."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from winnow.compaction.claims.atoms import VALUE
from winnow.compaction.claims.records import Words, marked
from winnow.compaction.text import normalise, tokens, word_set

#: Words that make a sentence a condition.
_CONDITION: Final = word_set(
    "must never always only don't doesn't not no cannot can't can could may should shall without most least within before require requires "
    "required allowed forbidden limit budget prefer prefers ask confirm confirmation except up under over"
)
_NEGATION: Final = re.compile(r"\b(?:not|never|no|cannot|without|nothing|neither|forbidden|prohibited)\b|n't\b")
_MUST: Final = re.compile(r"\b(?:must|always|required?|has to|have to|mandatory|never)\b")
_MAY: Final = re.compile(r"\b(?:may|can|could|optional(?:ly)?|might|allowed)\b")
_ALL: Final = re.compile(r"\b(?:all|every|any|each|entire|whole|everything|everyone)\b")
_ONE: Final = re.compile(r"\b(?:only|just|single|first|one|some)\b")
_ADDRESS: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}")
#: Words that two sentences share that send the same thing.
_SAME_ERRAND: Final = 2
_MAIL: Final = re.compile(_ADDRESS.pattern + r"|(?<!\w)[@#][a-z][\w-]{1,40}")
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_CLAUSE: Final = re.compile(r"[;.!?]\s+|\n+")
#: Where a sentence is parted once more: a condition may be one half of it.
_PARTS: Final = re.compile(r",\s+|\s*[();:]\s*|\s+(?=but\b|unless\b|otherwise\b)")
#: Tokens that a part of a sentence must have.
_PART_TOKENS: Final = 3
#: Sentences of a text, and characters of one, that are read: a long sentence is no single condition.
_SENTENCES: Final = 2_000
_SENTENCE_CHARS: Final = 400
#: Tokens that a condition must have, and their share that entry and sentence have in common (of both together).
_TOKENS: Final = 4
_ALIKE: Final = 0.6
#: Sentences with a token above which it finds none: it is in all of them. Entries that are looked at.
_COMMON: Final = 128
_ENTRIES: Final = 400
#: Tasks whose sentences are remembered: the same at every boundary of a fleet.
_TASKS: Final = 32
_TASK_CHARS: Final = 65_536


class _Condition(NamedTuple):
    """One sentence of task or user."""

    text: str  # lower case
    tokens: frozenset[str]
    source: int = 0  # number of the text; 0 is the task


class Rewritten(NamedTuple):
    """An entry that restates a condition otherwise."""

    entry: int
    claim: str
    said: str
    source: int  # number of the text; 0 is the task


class Conditions:
    """The sentences of some texts, found by their tokens."""

    def __init__(self, said: Sequence[str], first: int) -> None:
        """Read the sentences that could be conditions; texts are numbered from `first`."""
        self._sentences = [sentence for source, text in enumerate(said, first) for sentence in _sentences(text, source)]
        self._holding: dict[str, list[int]] = {}
        for number, one in enumerate(self._sentences):
            for token in one.tokens:
                self._holding.setdefault(token, []).append(number)

    def like(self, own: _Condition) -> list[tuple[float, _Condition]]:
        """Sentences that are enough alike, with how much, the most alike first."""
        holding, needed = self._holding, _ALIKE * len(own.tokens)
        held = [numbers for token in own.tokens if (numbers := holding.get(token)) is not None and len(numbers) <= _COMMON]
        if len(held) < needed:
            return []  # too few of its tokens stand in any sentence
        shared = Counter(chain.from_iterable(held))
        alike = [(count / len(own.tokens | self._sentences[number].tokens), number) for number, count in shared.items() if count >= needed]
        return [(share, self._sentences[at]) for share, at in sorted(alike, key=lambda one: (-one[0], one[1])) if share >= _ALIKE]


def rewritten(lowered: Sequence[str], ruled: Sequence[bool], task: str, user_turns: Sequence[str], everything: str) -> Iterator[Rewritten]:
    """Yield the entries that restate a condition of the task or of a user turn with one thing changed.

    Args:
        lowered: entries in lower case, normalised, without marker; the first 400 that could be conditions are read.
        ruled: of each entry whether its section is one of rules: there it is a condition however it is worded.
        task: P.
        user_turns: what users say in the span.
        everything: all texts of the boundary, in lower case.
    """
    asking = [
        at
        for at, (text, rule) in enumerate(zip(lowered, ruled, strict=True))
        if len(text) <= _SENTENCE_CHARS and (rule or "@" in text or not _CONDITION.isdisjoint(text.split()))
    ]
    if not asking:
        return
    sources = [_of_task(task) if len(task) <= _TASK_CHARS else Conditions([task], 0)]
    if user_turns:
        sources.append(Conditions(user_turns, 1))
    for entry in asking[:_ENTRIES]:
        redirected = _redirected(lowered[entry], (task, *user_turns), everything) if "@" in lowered[entry] else None
        if redirected is not None:
            yield Rewritten(entry, f"recipient: {lowered[entry].strip()}", *redirected)
            continue
        for clause in _CLAUSE.split(lowered[entry]):
            own = _condition(clause)
            if len(own.tokens) < _TOKENS:
                continue
            found = sorted(chain.from_iterable(some.like(own) for some in sources), key=lambda one: -one[0])
            changes = [_change(own, one) for _, one in found]
            # The same condition, unchanged, elsewhere: nothing was rewritten.
            if found and None not in changes:
                nearest = found[0][1]
                yield Rewritten(entry, f"{changes[0]}: {clause.strip()}", nearest.text, nearest.source)
                break


def _redirected(text: str, said: Sequence[str], everything: str) -> tuple[str, int] | None:
    """The sentence of task or user that names an address where an entry names one that nobody says, and its source; None: there is none."""
    if all(address in everything for address in _ADDRESS.findall(text)):
        return None
    own = frozenset(tokens(_ADDRESS.sub(" ", text)))
    for source, one in enumerate(said):
        for sentence in _SENTENCE.split(normalise(one).lower()) if "@" in one else ():
            head = sentence[:_SENTENCE_CHARS]
            if "@" not in head or _ADDRESS.search(head) is None:
                continue
            if len(own.intersection(tokens(_ADDRESS.sub(" ", head)))) >= _SAME_ERRAND:
                return head.strip(), source
    return None


def _change(own: _Condition, other: _Condition) -> str | None:
    """What one condition says otherwise than another that is about the same; None where nothing of weight differs."""
    if bool(_NEGATION.search(own.text)) != bool(_NEGATION.search(other.text)):
        return "negation"
    if VALUE.search(own.text) and VALUE.search(other.text):
        amounts, given = ({atom.canon: atom.kind for _, atom in Words(marked(one.text)).atoms} for one in (own, other))
        new = [kind for canon, kind in amounts.items() if canon not in given]
        gone = [kind for canon, kind in given.items() if canon not in amounts]
        if any(_comparable(kind, gone) for kind in new):
            return "amount"
    mails, named = (set(_MAIL.findall(one.text)) if "@" in one.text or "#" in one.text else set() for one in (own, other))
    if mails - named and named - mails:
        return "recipient"
    for strong, weak, what in ((_MUST, _MAY, "obligation"), (_ALL, _ONE, "scope")):
        here, there = _sides(own.text, strong, weak), _sides(other.text, strong, weak)
        if here != there and None not in {here, there}:
            return what
    return None


def _comparable(kind: str, others: Sequence[str]) -> bool:
    """Whether a number of one kind can stand for another: 24 hours for 48 hours, 1 bag for 3 bags."""
    if kind.startswith("n"):
        return any(other.startswith("n") for other in others)
    return kind in others


def _sides(text: str, strong: re.Pattern[str], weak: re.Pattern[str]) -> bool | None:
    """True where only the strong word stands, False where only the weak one does, None where both do or neither."""
    found = strong.search(text) is not None, weak.search(text) is not None
    return found[0] if found[0] != found[1] else None


def _condition(text: str, source: int = 0) -> _Condition:
    """A sentence in lower case, read."""
    return _Condition(text, frozenset(token for token in tokens(text) if not token.isdigit()), source)


def _sentences(text: str, source: int) -> tuple[_Condition, ...]:
    """The sentences of a text that could be conditions."""
    found: list[_Condition] = []
    for sentence in _SENTENCE.split(normalise(text).lower()):
        stripped = sentence.strip(" -*\t")
        if stripped and len(stripped) <= _SENTENCE_CHARS and not _CONDITION.isdisjoint(stripped.split()):
            found.append(_condition(stripped, source))
            parts = _PARTS.split(stripped)
            found += [one for part in parts if len(parts) > 1 and len((one := _condition(part, source)).tokens) >= _PART_TOKENS]
            if len(found) >= _SENTENCES:
                break
    return tuple(found)


@lru_cache(maxsize=_TASKS)
def _of_task(task: str) -> Conditions:
    """The sentences of the last task prompts of this process."""
    return Conditions([task], 0)
