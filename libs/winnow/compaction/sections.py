"""The headings above a line: the section path, and the class that the profile gives it."""

from collections.abc import Mapping

from winnow.contracts.vocabulary import SectionClass

#: Levels of headings that Markdown does not know: below its six, so that a Markdown heading closes them.
NUMBERED, BOLD, LABEL = 7, 8, 9
#: Above Markdown's six: an element stays open across the headings inside it.
ELEMENT = 0
#: Level of a document title; sections may still be numbered below it.
TITLE = 1
#: Characters of a heading that its entries carry: every entry repeats its section, so one huge heading must not multiply.
MAX_TITLE = 200


def title_of(heading: str) -> str:
    """Return a heading's text without emphasis, closing signs and a final colon."""
    title = heading[: 2 * MAX_TITLE].strip()
    if title.startswith(("**", "__")):
        title = title.replace(title[:2], "")
    return title.strip().rstrip(":\uff1a").rstrip()[:MAX_TITLE]


def normal(title: str) -> str:
    """Return `title` as profiles name it: lower case, without a number, sign or "historical" before it."""
    name = title[:MAX_TITLE].casefold()
    if name and not name[0].isalpha():
        name = name[next((at for at, sign in enumerate(name) if sign.isalpha()), len(name)) :]
    return name.removeprefix("historical ").rstrip(" :.*")


def class_of(name: str, classes: Mapping[str, SectionClass]) -> SectionClass | None:
    """Return the class of the section `name` (as `normal` gives it): by all of it, else by the longest known start."""
    if name in classes:
        return classes[name]
    known = [key for key in classes if name.startswith(key) and not name[len(key)].isalpha()]
    return classes[max(known, key=len)] if known else None


class Sections:
    """The stack of open headings. `path`, `names` and `section_class` hold for the lines that follow."""

    __slots__ = ("_classes", "_stack", "names", "path", "section_class")

    def __init__(self, classes: Mapping[str, SectionClass]) -> None:
        self._classes = classes
        self._stack: list[tuple[int, str, str, SectionClass | None]] = []  # level, title, name, class
        self.names: frozenset[str] = frozenset()
        self.path = ""
        self.section_class = SectionClass.UNKNOWN

    def open(self, level: int, title: str) -> None:
        """Start the section `title`; it closes all open ones of the same or a deeper level."""
        stack = self._stack
        while stack and stack[-1][0] >= level:
            stack.pop()
        name = normal(title)
        stack.append((level, title, name, class_of(name, self._classes)))
        self._settle()

    def close(self, title: str) -> None:
        """End the element `title` with everything inside it; nothing happens where it is not open."""
        for at in range(len(self._stack) - 1, -1, -1):
            if self._stack[at][:2] == (ELEMENT, title):
                del self._stack[at:]
                self._settle()
                return

    @property
    def element(self) -> str | None:
        """The innermost open element."""
        return next((title for level, title, _, _ in reversed(self._stack) if level == ELEMENT), None)

    @property
    def numberable(self) -> bool:
        """Whether a numbered line here can be a heading: no heading but a document title or another numbered one is open."""
        return all(level in {TITLE, NUMBERED} for level, _, _, _ in self._stack)

    def _settle(self) -> None:
        self.path = " / ".join([title for _, title, _, _ in self._stack])
        self.names = frozenset([name for _, _, name, _ in self._stack])
        self.section_class = SectionClass.UNKNOWN
        for _, _, _, section_class in self._stack:
            if section_class is not None:
                self.section_class = section_class  # the innermost known one is the last
