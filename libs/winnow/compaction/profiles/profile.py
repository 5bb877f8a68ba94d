"""What the parser must know of one host's summary format."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from winnow.contracts.vocabulary import SectionClass

#: When a numbered line is a heading: never; where its title is known or it ends in a colon (`titles`);
#: where it ends in a colon, has deeper content and no Markdown heading stands above it (`deep`).
Numbered = Literal["never", "titles", "deep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One host's format. Names of sections are lower case, as `sections.normal` gives them; texts are as the host writes them."""

    name: str
    aliases: tuple[str, ...] = ()  # host names that mean this profile
    strict: bool = False  # a text without any sign of the format was not written in it, whatever the caller says
    section_classes: Mapping[str, SectionClass] = field(default_factory=lambda: MappingProxyType({}))
    paragraphs: bool = True  # paragraphs are entries; otherwise kept unjudged
    preamble: bool = True  # text before the first heading, and a closing offer of help, are kept unjudged
    lead_ins: bool = True  # "Remaining:" before a list is an entry that goes with its last child; otherwise kept unjudged
    numbered: Numbered = "never"
    titles: frozenset[str] = frozenset()  # of numbered sections
    elements: frozenset[str] = frozenset()  # XML-like elements that are sections
    wrappers: frozenset[str] = frozenset()  # elements around the whole, no section
    labels: bool = False  # `PENDING: x` is an entry
    question_answer: bool = False  # "Q: ... A: ..." is one entry
    bare_sections: frozenset[str] = frozenset()  # each line without a marker is an entry of its own
    pinned_lines: tuple[str, ...] = ()  # line starts that the host audits for
    pinned_sections: frozenset[str] = frozenset()  # sections that the host writes and audits for
    prefixes: tuple[str, ...] = ()  # starts of lines that the host puts before the summary
    prior_context: tuple[str, str] | None = None  # delimiters around foreign text that the summary was merged with
    suffixes: tuple[str, ...] = ()  # starts of lines from which on everything is the host's
    appended: frozenset[str] = frozenset()  # elements that the host appends: up to their closing tag, or to the end
    echo_tools: frozenset[str] = frozenset()  # tools that give back the agent's words, besides `roles.ECHO_TOOLS`; no case, `_` nor `-`
    user_turns_survive: bool = False  # the host keeps the user's messages of the span beside the summary


def classes(
    *,
    observation: tuple[str, ...] = (),
    forward: tuple[str, ...] = (),
    mixed: tuple[str, ...] = (),
    intent: tuple[str, ...] = (),
    verbatim: tuple[str, ...] = (),
) -> Mapping[str, SectionClass]:
    """Return the map from section name to class."""
    groups = {
        SectionClass.OBSERVATION: observation,
        SectionClass.FORWARD: forward,
        SectionClass.MIXED: mixed,
        SectionClass.INTENT: intent,
        SectionClass.VERBATIM: verbatim,
    }
    return MappingProxyType({name: group for group, names in groups.items() for name in names})
