"""Deliverables: an entry that asks for an output artefact that neither the task nor a user asked for. A flag only."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from winnow.compaction.claims.records import source_texts
from winnow.compaction.corpus import Corpus
from winnow.compaction.roles import Role
from winnow.compaction.segments import Entry
from winnow.contracts.vocabulary import SectionClass

#: What is made for somebody to read; working files of the agent (scripts, patches, tests) are its own business.
_ARTEFACTS: Final = {
    form: forms
    for forms in (
        ("report", "reports", "write-up", "writeup"),
        ("presentation", "presentations", "slide", "slides", "deck"),
        ("spreadsheet", "spreadsheets", "excel", "xlsx"),
        ("dashboard", "dashboards"),
        ("diagram", "diagrams", "flowchart", "chart", "charts"),
        ("document", "documents", "documentation", "docs", "readme"),
        ("changelog", "release notes"),
        ("memo", "memos", "briefing", "newsletter", "blog post", "article", "press release"),
        ("email", "emails", "e-mail", "letter"),
        ("tutorial", "tutorials", "guide", "guides", "handbook", "manual"),
        ("invoice", "invoices", "certificate", "certificates", "contract", "contracts"),
        ("translation", "translations"),
        ("video", "videos", "screencast"),
    )
    for form in forms
}
_MAKING: Final = frozenset(
    {"create", "write", "produce", "prepare", "generate", "draft", "make", "compile", "deliver", "build", "design", "compose", "set"}
)
_MADE: Final = re.compile(
    rf"\b(?:{'|'.join(sorted(_MAKING - {'set'}))}|set up)\s"
    r"(?:[\w-]{1,20}\s){0,5}?"
    rf"({'|'.join(sorted(map(re.escape, _ARTEFACTS), key=len, reverse=True))})\b"
)
_OPEN: Final = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])?\s*\[ \]")
_TITLE: Final = re.compile(r"\b(?:to-?dos?|pending|asks?|next steps?|requests?|deliverables?|goals?)\b")
#: Characters of an entry that are read.
_CHARS: Final = 600


#: Who can have asked: M may carry a user turn that is gone, an output may hold somebody's wish.
_ASKING: Final = (Role.TASK, Role.USER, Role.PREVIOUS, Role.SOURCE)


class Invented(NamedTuple):
    """An entry that asks for something nobody asked for."""

    entry: int
    claim: str


def invented(entries: Sequence[Entry], corpus: Corpus) -> Iterator[Invented]:
    """Yield the entries that ask for an artefact of which task, user turns, M and outputs know no word."""
    asked: str | None = None
    for number, entry in enumerate(entries):
        head = entry.text[:_CHARS].lower()
        asks = entry.section_class in {SectionClass.FORWARD, SectionClass.INTENT} or _TITLE.search(entry.section.lower()) is not None
        if not asks and _OPEN.match(head) is None:
            continue
        made = None if _MAKING.isdisjoint(head.split()) else _MADE.search(head)
        if made is None:
            continue
        if asked is None:
            asked = "\0".join(text for role in _ASKING for text in source_texts(corpus, role))
        if not any(form in asked for form in _ARTEFACTS[made[1]]):
            yield Invented(number, made.group())
