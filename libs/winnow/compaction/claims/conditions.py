"""Conditions: an entry that restates a condition of the task or of a user with another action, amount, recipient or scope. A flag only."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from winnow.compaction.claims.atoms import Atom
from winnow.compaction.claims.records import Words, marked
from winnow.compaction.text import normalise, tokens

#: Words that make a sentence a condition.
_CONDITION: Final = re.compile(
    r"\b(?:must|never|always|only|do not|don't|does not|no|not|cannot|can't|can|could|may|should|shall|without|at most|at least|"
    r"up to|within|before|require[sd]?|allowed|forbidden|limit|budget|prefer\w*|ask|confirm\w*|except)\b"
)
_NEGATION: Final = re.compile(r"\b(?:not|never|no|cannot|without|nothing|neither|forbidden|prohibited)\b|n't\b")
_MUST: Final = re.compile(r"\b(?:must|always|required?|has to|have to|mandatory|never)\b")
_MAY: Final = re.compile(r"\b(?:may|can|could|optional(?:ly)?|might|allowed)\b")
_ALL: Final = re.compile(r"\b(?:all|every|any|each|entire|whole|everything|everyone)\b")
_ONE: Final = re.compile(r"\b(?:only|just|single|first|one|some)\b")
_MAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}|(?<!\w)[@#][a-z][\w-]{1,40}")
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_CLAUSE: Final = re.compile(r"[;.!?]\s+|\n+")
#: Sentences of a text, and characters of one, that are read: a long sentence is no single condition.
_SENTENCES: Final = 2_000
_SENTENCE_CHARS: Final = 400
#: Tokens that a condition must have, and their share that entry and sentence have in common (of both together).
_TOKENS: Final = 4
_ALIKE: Final = 0.6
#: Tasks whose sentences are remembered: the same at every boundary of a fleet.
_TASKS: Final = 32
_TASK_CHARS: Final = 65_536


class _Condition(NamedTuple):
    """One sentence of task or user."""

    text: str  # lower case
    tokens: frozenset[str]
    atoms: tuple[Atom, ...]


class Rewritten(NamedTuple):
    """An entry that restates a condition otherwise."""

    entry: int
    claim: str
    said: str
    source: int  # number of the text; 0 is the task


class Conditions:
    """The sentences of task and user turns, found by their tokens."""

    def __init__(self, task: str, user_turns: Sequence[str]) -> None:
        """Read the task, which is remembered, and the user turns."""
        texts = [_of_task(task) if len(task) <= _TASK_CHARS else _sentences(task), *(_sentences(turn) for turn in user_turns)]
        self._sentences = [(source, one) for source, sentences in enumerate(texts) for one in sentences]
        self._holding: dict[str, list[int]] = {}
        for number, (_, one) in enumerate(self._sentences):
            for token in one.tokens:
                self._holding.setdefault(token, []).append(number)

    def rewritten(self, lowered: Sequence[str]) -> Iterator[Rewritten]:
        """Yield the entries (in lower case, normalised, without marker) that restate a condition with one thing changed."""
        for entry, text in enumerate(lowered):
            if len(text) > _SENTENCE_CHARS or _CONDITION.search(text) is None:
                continue
            for clause in _CLAUSE.split(text):
                own = _condition(clause)
                changes = [(source, one, _change(own, one)) for source, one in self._nearest(own)] if len(own.tokens) >= _TOKENS else ()
                # The same condition, unchanged, elsewhere: nothing was rewritten.
                if changes and all(change is not None for _, _, change in changes):
                    source, one, change = changes[0]
                    yield Rewritten(entry, f"{change}: {clause.strip()}", one.text, source)
                    break

    def _nearest(self, own: _Condition) -> list[tuple[int, _Condition]]:
        """Sentences that are enough alike, the most alike first."""
        shared: Counter[int] = Counter()
        for token in own.tokens:
            shared.update(self._holding.get(token, ()))
        alike = [
            (count / len(own.tokens | self._sentences[number][1].tokens), number)
            for number, count in shared.items()
            if count >= _ALIKE * len(own.tokens)
        ]
        return [self._sentences[number] for share, number in sorted(alike, key=lambda one: (-one[0], one[1])) if share >= _ALIKE]


def _change(own: _Condition, other: _Condition) -> str | None:
    """What one condition says otherwise than another that is about the same; None where nothing of weight differs."""
    if bool(_NEGATION.search(own.text)) != bool(_NEGATION.search(other.text)):
        return "negation"
    amounts, given = ({atom.canon: atom.kind for atom in one.atoms} for one in (own, other))
    new = [kind for canon, kind in amounts.items() if canon not in given]
    gone = [kind for canon, kind in given.items() if canon not in amounts]
    if any(_comparable(kind, gone) for kind in new):
        return "amount"
    mails, named = set(_MAIL.findall(own.text)), set(_MAIL.findall(other.text))
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


def _condition(text: str) -> _Condition:
    """A sentence in lower case, read."""
    return _Condition(
        text, frozenset(token for token in tokens(text) if not token.isdigit()), tuple(atom for _, atom in Words(marked(text)).atoms)
    )


def _sentences(text: str) -> tuple[_Condition, ...]:
    """The sentences of a text that could be conditions."""
    found: list[_Condition] = []
    for sentence in _SENTENCE.split(normalise(text).lower()):
        stripped = sentence.strip(" -*\t")
        if stripped and len(stripped) <= _SENTENCE_CHARS and _CONDITION.search(stripped):
            found.append(_condition(stripped))
            if len(found) >= _SENTENCES:
                break
    return tuple(found)


@lru_cache(maxsize=_TASKS)
def _of_task(task: str) -> tuple[_Condition, ...]:
    """The sentences of the last task prompts of this process."""
    return _sentences(task)
