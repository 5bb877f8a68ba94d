"""Work that a shell does: which commands are the act that an entry's verb names, and whether they were run for all that it names."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, NamedTuple

from winnow.compaction.claims.acts import Act
from winnow.compaction.text import STOP_WORDS, word_set


class _Work(NamedTuple):
    """One kind of work."""

    verbs: frozenset[str]  # of entries
    command: re.Pattern[str]  # that does it
    nouns: frozenset[str]  # that say no more than the verb does


_WORKS: Final = (
    _Work(
        word_set("push"),
        re.compile(r"\bgit push\b"),
        word_set("branch branches changes commit commits origin remote github gitlab upstream code work"),
    ),
    _Work(
        word_set("commit"),
        re.compile(r"\bgit commit\b"),
        word_set("change changes work git everything files fix edits repository local"),
    ),
    _Work(
        word_set("create open make submit raise"),
        re.compile(r"\b(?:gh pr|hub|glab mr) (?:create|pull-request)\b"),
        word_set("pull request pr mr merge draft"),
    ),
    _Work(word_set("create"), re.compile(r"\bgh repo create\b"), word_set("repository repo github new public private")),
    _Work(word_set("copy duplicate"), re.compile(r"\bcp\b"), word_set("file files over folder directory")),
    _Work(word_set("move rename"), re.compile(r"\bmv\b"), word_set("file files over folder directory")),
    _Work(
        word_set("delete remove"),
        re.compile(r"\b(?:rm|git branch (?:-d|--delete)|git push (?:\S+ )?--delete)\b"),
        word_set("file files branch folder directory local old"),
    ),
    _Work(
        word_set("install"),
        re.compile(r"\b(?:pip3?|npm|pnpm|yarn|uv|cargo|brew|apt(?:-get)?|bundle|poetry) (?:\S+ )?(?:install|i|ci|add|sync)\b"),
        word_set("dependencies dependency packages package requirements all project"),
    ),
    _Work(
        word_set("run execute rerun"),
        re.compile(
            r"\b(?:pytest|tox|jest|vitest|rspec|phpunit|ctest"
            r"|(?:npm|pnpm|yarn|cargo|go|mvn|gradle|make|bundle exec)\b[^;&|]{0,20}\b(?:test|check))\b"
        ),
        word_set("test tests suite all full whole unit complete entire"),
    ),
)
#: All verbs that are looked for.
VERBS: Final = frozenset[str]().union(*(work.verbs for work in _WORKS))
#: Acts that a later change of a file makes incomplete: what was run or committed before it lacks it.
_OUTDATED: Final = word_set("push commit run execute rerun")
_WORD: Final = re.compile(r"[a-z0-9](?:[\w./-]*[a-z0-9])?")
#: Words of an entry besides verb and nouns: more of them say that there is more to it.
_NAMES: Final = 6


def finished(acts: Sequence[Act]) -> Callable[[re.Pattern[str]], list[Act]]:
    """Gives the acts that ran a command and did not fail; several entries ask for the same."""
    return cache(lambda command: [act for act in acts if command.search(act.arguments) and not act.failed])


def run_by(text: str, verb: str, acts: Sequence[Act], ran: Callable[[re.Pattern[str]], list[Act]]) -> Act | None:
    """The last command that finished the work of an open entry; None where none did, or where more is named than was run.

    Args:
        text: the entry in lower case, without marker.
        verb: its first word.
        acts: the agent's acts that came back with an output, in order.
        ran: what `finished` gives of them.
    """
    for verbs, command, nouns in _WORKS:
        if verb not in verbs:
            continue
        names = [word for word in _WORD.findall(text) if word != verb and word not in nouns and word not in STOP_WORDS]
        if len(names) > _NAMES or (not names and verb not in _OUTDATED and not _is_whole(text, nouns)):
            continue
        done = ran(command)
        if not done:
            continue
        since = (act for act in acts if act.number > done[-1].number)
        if verb in _OUTDATED and any(act.changes and not command.search(act.arguments) for act in since):
            continue
        arguments = " ".join(act.arguments for act in done)
        if all(name in arguments for name in names):
            return done[-1]
    return None


def _is_whole(text: str, nouns: frozenset[str]) -> bool:
    """Whether an entry without a name says its object by a noun: "install dependencies", and not "remove it"."""
    return not nouns.isdisjoint(_WORD.findall(text))
