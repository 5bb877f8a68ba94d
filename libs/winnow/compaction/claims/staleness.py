"""Staleness: an entry that lists work as open although an output of the span shows it done.

Only where act and object are both named: a command that was run, a file that was written, a tool that was called for the same ids. Whether
the work was done *well* is not asked.
"""

import re
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Final, NamedTuple

from winnow.compaction.claims.acts import Act, acts_of, squeezed
from winnow.compaction.claims.commands import VERBS, finished, run_by
from winnow.compaction.segments import Entry
from winnow.compaction.text import strip_marker
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import SectionClass

#: Characters of an open entry that are read: a task that takes more to say is no single act.
_CHARS: Final = 600
#: Open entries and last acts that are looked at.
_ENTRIES: Final = 400
_ACTS: Final = 2_000
#: Characters in which the verb stands.
_VERB_CHARS: Final = 48
#: Characters in which a check box stands.
_MARKER_CHARS: Final = 12
_OPENING: Final = re.compile(r"(?:to ?do:?|next(?: step)?s?:|still (?:need|have) to|need(?:s)? to|remaining:|pending:|then)\s+")
_OPEN_TITLE: Final = re.compile(r"\b(?:to-?dos?|pending|next steps?|remaining|open (?:items|tasks|questions))\b")
#: Words that make the work conditional, repeated or not the act itself.
_NOT_YET: Final = re.compile(
    r"\b(?:again|re-?run|re-?try|re-?do|repeat|if|unless|once|when|after|until|else|whether|either|or|not|another|more|also|remaining|other|rest)\b"
)
_QUOTED: Final = re.compile(r"`([^`\n]{2,200})`")
_CODE: Final = re.compile(r"\b(?=[a-z0-9_-]*\d)(?=[a-z0-9_-]*[a-z])[a-z0-9_-]{4,64}\b|#\d{1,9}\b|\b\d{4,12}\b")
_PATH: Final = re.compile(r"[\w./~-]*\w\.[a-z]\w{0,8}\Z|[\w.~-]*/[\w./~-]+\Z")
_WORD: Final = re.compile(r"[a-z]+(?:-[a-z]+)?")
_RUN: Final = frozenset({"run", "execute", "start", "launch", "call", "invoke", "perform", "test", "try"})
_WRITE: Final = frozenset({"create", "write", "save", "generate", "add"})
_WRITERS: Final = re.compile(r"write|create|edit|insert|str_replace|patch|\b(?:cat|tee|touch|echo)\b|>")
#: Acts on a record that a tool does by name ("cancel_reservation" cancels), so that verb and id are the whole of it.
_ON_RECORDS: Final = frozenset(
    {
        "cancel",
        "book",
        "delete",
        "remove",
        "submit",
        "close",
        "refund",
        "merge",
        "approve",
        "archive",
        "transfer",
        "send",
        "create",
        "return",
    }
)
#: Words besides what is quoted, in an entry that is about it alone.
_SHORT: Final = 4


class Stale(NamedTuple):
    """An open entry whose work was done."""

    entry: int
    claim: str
    output: int  # position of the message


def stale(entries: Sequence[Entry], messages: Sequence[Message], sources: Container[int]) -> Iterator[Stale]:
    """Yield the open entries whose work an output shows done; `sources` are the positions of the outputs among the messages."""
    titled = {section: _OPEN_TITLE.search(section.lower()) is not None for section in {entry.section for entry in entries}}
    opened = [
        (number, text) for number, entry in enumerate(entries) if (text := _open_work(entry, titled=titled[entry.section])) is not None
    ]
    named = [
        (number, text, verb)
        for number, text in opened[:_ENTRIES]
        if (verb := _verb(text)) in _ON_RECORDS or verb in VERBS or _QUOTED.search(text)
    ]
    if not named:
        return  # no act that could be found again
    acts = [act for act in acts_of(messages, sources) if act.answer is not None][-_ACTS:]
    ran = finished(acts)
    for number, text, verb in named:
        act = _done_by(text, verb, acts, ran)
        if act is not None and act.output is not None:
            yield Stale(number, text, act.output)


def _open_work(entry: Entry, *, titled: bool) -> str | None:
    """The work that an entry lists as open, in lower case; None where it lists none, or not a plain act.

    `titled`: its section is one of open work.
    """
    start = entry.text.lstrip()[:_MARKER_CHARS].lower()
    boxed = "[ ]" in start
    if "[x]" in start or len(entry.text) > _CHARS:
        return None
    text = strip_marker(entry.text.lstrip()).lower().strip()
    opening = _OPENING.match(text)
    if not boxed and opening is None and entry.section_class is not SectionClass.FORWARD and not titled:
        return None
    text = text[opening.end() :] if opening else text
    bare = _QUOTED.sub(" ", text)
    return None if _NOT_YET.search(bare) else text


def _verb(text: str) -> str:
    """The first word of an entry that is not quoted."""
    found = _WORD.search(_QUOTED.sub(" ", text)[:_VERB_CHARS])
    return found.group() if found else ""


def _done_by(text: str, verb: str, acts: Sequence[Act], ran_by: Callable[[re.Pattern[str]], list[Act]]) -> Act | None:
    """The last act that did the work; None where none did."""
    quoted = [squeezed(one) for one in _QUOTED.findall(text)]
    if verb in _RUN or text.startswith("`"):
        commands = [one for one in quoted if " " in one or verb in _RUN]
        if len(commands) == 1 and not _PATH.match(commands[0]) and _is_all(text, commands[0]):
            ran = [act for act in acts if commands[0] in act.arguments]
            # Whatever changed since may have broken it.
            if ran and not ran[-1].failed and not any(act.changes for act in acts if act.number > ran[-1].number):
                return ran[-1]
    if verb in _WRITE and len(quoted) == 1 and _PATH.match(quoted[0]) and _is_all(text, quoted[0]):
        for act in reversed(acts):
            if quoted[0] in act.arguments and (_WRITERS.search(act.tool) or _WRITERS.search(act.arguments[:100])) and not act.failed:
                return act
    return _on_record(text, verb, quoted, acts) or run_by(text.replace("`", ""), verb, acts, ran_by)


def _is_all(text: str, quoted: str) -> bool:
    """Whether an entry is about what it quotes and nothing more: "create the file `x.py`", and not "run `x.py` and read the flag"."""
    return len(_WORD.findall(text.replace(f"`{quoted}`", " "))) <= _SHORT


def _on_record(text: str, verb: str, quoted: Sequence[str], acts: Sequence[Act]) -> Act | None:
    """The last call of a tool that is named, or that has the verb in its name, for all the ids of the entry."""
    tools = {act.tool for act in acts}
    named = [one for one in quoted if one in tools]
    values = set(_CODE.findall(text)) - set(named)
    if not values or not (named or verb in _ON_RECORDS):
        return None
    for act in reversed(acts):
        by_name = act.tool in named or (not named and verb in act.tool.split("_"))
        if by_name and all(value in act.arguments for value in values) and (verb in act.tool or act.changes) and not act.failed:
            return act
    return None
