"""Which host wrote a summary: known signs first, then Markdown, labels, prose."""

from dataclasses import dataclass

from winnow.compaction.lines import INVISIBLE, closes, fence_of, is_bold_line, is_separator, is_underline, marker
from winnow.compaction.profiles import PROFILES, Profile
from winnow.compaction.profiles.openclaw import HEADINGS
from winnow.compaction.sections import normal

#: Characters of a line that are looked at.
_HEAD = 80
#: Signs of a format that make it certain enough: one may be chance, headings like "Goal" are everyone's.
_ENOUGH = 2
#: Numbered titles and elements are less distinctive one by one.
_MANY = 3

_OPENCLAW = frozenset(heading.lower() for heading in HEADINGS)
_HERMES = frozenset(
    {
        "historical task snapshot",
        "historical in-progress state",
        "historical pending user asks",
        "historical remaining work",
        "completed actions",
        "active state",
        "resolved questions",
    }
)
_PI = frozenset({"constraints & preferences", "progress", "key decisions", "critical context", "next steps"})
_OPENCODE = frozenset({"instructions", "discoveries", "accomplished", "relevant files / directories", "relevant files"})
_LANGCHAIN = frozenset({"session intent", "summary", "artifacts", "next steps"})


@dataclass(slots=True)
class Signs:
    """What the lines outside fences show."""

    headings: set[str]  # Markdown headings, lower case
    tags: set[str]  # names of elements that start a line
    numbered: set[str]  # titles of numbered lines that end in a colon
    labels: set[str]  # upper-case labels, lower case
    start: str  # first line that is not blank
    markdown: bool  # anything that is not plain paragraphs


def read_signs(lines: list[str]) -> Signs:
    """Collect the signs in one pass."""
    signs = Signs(set(), set(), set(), set(), "", False)
    fence: str | None = None
    for line in lines:
        body = line[: 4 * _HEAD].lstrip(INVISIBLE)
        if not body:
            continue
        first = body[0]
        if fence is not None:
            if closes(line, fence):
                fence = None
            continue
        if not signs.start:
            signs.start = body
        if first == "#":
            signs.headings.add(body[:_HEAD].strip("#" + INVISIBLE).rstrip(":").casefold())
            signs.markdown = True
        elif first == "<":
            signs.tags.add(body[1 : max(body.find(">", 0, _HEAD), 1)])
        elif first in "`~":
            fence = fence_of(body)
            signs.markdown = True
        elif "0" <= first <= "9":
            title = body[:_HEAD].rstrip(INVISIBLE)
            if title.endswith(":"):
                signs.numbered.add(normal(title))
            signs.markdown = signs.markdown or marker(body) is not None
        elif "A" <= first <= "Z":
            colon = body.find(":", 0, _HEAD)
            if colon > 1 and body[:colon].isupper():
                signs.labels.add(body[:colon].casefold())
        elif not signs.markdown:
            signs.markdown = marker(body) is not None or is_bold_line(body) or is_separator(body) or is_underline(body) > 0
    return signs


def strength(profile: Profile, signs: Signs) -> int:
    """Return how many signs of a profile's own format there are."""
    match profile.name:
        case "openclaw":
            return len(_OPENCLAW & signs.headings)
        case "hermes":
            return len(_HERMES & signs.headings) + _starts(profile, signs)
        case "gemini":
            return _MANY * ("state_snapshot" in signs.tags) + len(profile.elements & signs.tags)
        case "claude-code":
            return len(profile.titles & signs.numbered) + _starts(profile, signs)
        case "openhands":
            return len(profile.section_classes.keys() & signs.labels)
        case _:
            return _starts(profile, signs)


def _starts(profile: Profile, signs: Signs) -> int:
    prefixes = profile.prefixes + (profile.prior_context[:1] if profile.prior_context else ())
    return _MANY * signs.start.startswith(prefixes)


def detect(signs: Signs) -> Profile:
    """Return the profile that the signs point to."""
    certain = (("hermes", _ENOUGH), ("openclaw", _ENOUGH), ("gemini", _MANY), ("claude-code", _MANY), ("langchain", _MANY), ("codex", _MANY))
    for name, enough in certain:
        if strength(PROFILES[name], signs) >= enough:
            return PROFILES[name]
    headings = signs.headings
    if "session intent" in headings and len(_LANGCHAIN & headings) >= _ENOUGH:
        return PROFILES["langchain"]
    if len(_OPENCODE & headings) >= _ENOUGH or ("goal" in headings and _OPENCODE & headings):
        return PROFILES["opencode"]
    if _starts(PROFILES["pi"], signs) or ("goal" in headings and len(_PI & headings) >= _ENOUGH):
        return PROFILES["pi"]
    if signs.markdown:
        return PROFILES["markdown"]
    if strength(PROFILES["openhands"], signs) >= _ENOUGH:
        return PROFILES["openhands"]
    return PROFILES["prose"]
