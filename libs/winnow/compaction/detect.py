"""Which host wrote a summary: signs of a known host first, then any Markdown, then prose."""

from collections.abc import Callable
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
_OPENCODE_THIRD = frozenset({"important details", "work state", "next move"})
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
    signs = Signs(set(), set(), set(), set(), "", markdown=False)
    fence: str | None = None
    for line in lines:
        if fence is not None:
            fence = None if closes(line, fence) else fence
            continue
        body = line[: 4 * _HEAD].lstrip(INVISIBLE)
        if not body:
            continue
        signs.start = signs.start or body
        first = body[0]
        if "```" in body or "~~~" in body:
            behind = marker(body)  # a fence may start behind a bullet's sign
            body = body[behind.end() :] if behind is not None else body
            first = body[0]
        if first in "`~":
            fence = fence_of(body)
            signs.markdown = True
        elif not (first == "-" and signs.markdown):  # most lines are bullets, and one of them says as much as all
            _note(first, body, signs)
    return signs


def _note(first: str, body: str, signs: Signs) -> None:
    if first == "#":
        signs.headings.add(body[:_HEAD].strip("#" + INVISIBLE).rstrip(":").casefold())
        signs.markdown = True
    elif first == "<":
        signs.tags.add(body[1 : max(body.find(">", 0, _HEAD), 1)])
    elif "A" <= first <= "Z":
        colon = body.find(":", 0, _HEAD)
        if colon > 1 and body[:colon].isupper():
            signs.labels.add(body[:colon].casefold())
    else:
        title = body[:_HEAD].rstrip(INVISIBLE)
        if "0" <= first <= "9" and title.endswith(":"):
            signs.numbered.add(normal(title))
        signs.markdown = signs.markdown or marker(body) is not None or is_bold_line(body) or is_separator(body) or is_underline(body) > 0


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


def another(profile: Profile, signs: Signs) -> bool:
    """Tell whether the text bears the signs of another host whose format is strict: free Markdown has none of its own to weigh against."""
    return any(other.strict and other is not profile and strength(other, signs) >= _MANY for other in PROFILES.values())


def _starts(profile: Profile, signs: Signs) -> int:
    prefixes = profile.prefixes + (profile.prior_context[:1] if profile.prior_context else ())
    return _MANY * signs.start.startswith(prefixes)


def _is_langchain(signs: Signs) -> bool:
    ours = "session intent" in signs.headings and len(_LANGCHAIN & signs.headings) >= _ENOUGH
    return ours or _starts(PROFILES["langchain"], signs) > 0


def _is_opencode(signs: Signs) -> bool:
    third = len(_OPENCODE_THIRD & signs.headings) >= _ENOUGH
    return third or len(_OPENCODE & signs.headings) >= (1 if "goal" in signs.headings else _ENOUGH)


def _is_pi(signs: Signs) -> bool:
    return ("goal" in signs.headings and len(_PI & signs.headings) >= _ENOUGH) or _starts(PROFILES["pi"], signs) > 0


#: In this order the first that holds decides: what is most certain comes first.
_TESTS: tuple[tuple[str, Callable[[Signs], bool]], ...] = (
    ("hermes", lambda signs: strength(PROFILES["hermes"], signs) >= _ENOUGH),
    ("openclaw", lambda signs: strength(PROFILES["openclaw"], signs) >= _ENOUGH),
    ("gemini", lambda signs: strength(PROFILES["gemini"], signs) >= _MANY),
    ("claude-code", lambda signs: strength(PROFILES["claude-code"], signs) >= _MANY),
    ("langchain", _is_langchain),
    ("codex", lambda signs: _starts(PROFILES["codex"], signs) > 0),
    ("opencode", _is_opencode),
    ("pi", _is_pi),
    ("openhands", lambda signs: not signs.headings and strength(PROFILES["openhands"], signs) >= _ENOUGH),
    ("markdown", lambda signs: signs.markdown),
)


def detect(signs: Signs) -> Profile:
    """Return the profile that the signs point to."""
    return PROFILES[next((name for name, holds in _TESTS if holds(signs)), "prose")]
