"""Headings of all kinds, and the rules and labels that look like them."""

from typing import Final

from winnow.compaction import lines as ln
from winnow.compaction import sections as sc
from winnow.compaction.cursor import Cursor
from winnow.compaction.profiles.profile import Profile
from winnow.contracts.vocabulary import SegmentKind

#: Characters; the longest label that is looked for.
_MAX_LABEL: Final = 48
#: Characters; a longer line above `---` is a paragraph above a rule, not a heading.
_MAX_SETEXT: Final = 200
#: Characters; a paragraph before the first heading that is longer makes claims, and is judged like any other.
_MAX_PREAMBLE: Final = 300
#: Lines; front matter is shorter.
_MAX_FRONT_MATTER: Final = 100
#: Columns by which a numbered section heading may differ from the first one.
_SLACK: Final = 1
#: Columns; CommonMark's limit, deeper is code.
MAX_HEADING_INDENT: Final = 3


class Headings(Cursor):
    """What opens a section, and what ends the preamble."""

    def __init__(self, text: str, lines: list[str], start: int, end: int, profile: Profile) -> None:
        super().__init__(text, lines, start, end, profile)
        self.headings = 0  # real ones, that end a preamble
        self._bare = False  # in a section where each line is an entry
        self._numbered: tuple[int, int] = (-1, 0)  # indentation of the first numbered heading, number of the last

    def _heading(self, line: str, level: int, title: str) -> None:
        blocks = self.blocks
        blocks.close_list()
        blocks.cut_before = False
        blocks.sections.open(level, title)
        blocks.add(SegmentKind.HEADING, "", line)
        self._bare = not self._profile.bare_sections.isdisjoint(blocks.sections.names)
        blocks.pinned = not self._profile.pinned_sections.isdisjoint(blocks.sections.names)
        if level <= sc.NUMBERED:
            self._end_preamble()

    def _end_preamble(self) -> None:
        """Short plain paragraphs before the first real heading are no entries (T15); a bold lead-in is."""
        self.headings += 1
        if self.headings > 1 or not self._profile.preamble:
            return
        for block in self.blocks.done:
            short = block.role == "paragraph" and block.parent is None and block.core_end - block.start <= _MAX_PREAMBLE
            if short and block.kind is SegmentKind.ENTRY and not self.blocks.text.startswith("**", block.body_at):
                block.kind = SegmentKind.PROSE

    def _atx(self, line: str, body: str, indent: int) -> bool:
        rest = body.lstrip("#")
        level = len(body) - len(rest)
        if level > 6 or indent > MAX_HEADING_INDENT or self.blocks.inside_list(indent):  # noqa: PLR2004 # Markdown's levels
            return False
        if rest and rest[0] not in " \t\r\n\xa0\u3000":
            # `#Heading` without a blank: a capital tells it from `#1234` and `#tag`, two signs from a channel's name.
            bare_heading = rest[0].isupper() if level == 1 else not (rest[0].isdigit() or rest[0] == "!")
            if not bare_heading:
                return False
        self._heading(line, level, sc.title_of(rest[: 4 * sc.MAX_TITLE].strip(ln.INVISIBLE).rstrip("#")))
        return True

    def _bold(self, line: str, body: str, indent: int) -> bool:
        if self.blocks.inside_list(indent) or not ln.is_bold_line(body):
            return False
        self._heading(line, sc.BOLD, sc.title_of(body.rstrip(ln.INVISIBLE)))
        return True

    def _rule(self, line: str, body: str) -> bool:
        """Take a setext underline, or a thematic break; `===` that underlines nothing is text."""
        blocks = self.blocks
        level = ln.is_underline(body)
        last = blocks.done[-1] if blocks.done else None
        if level and blocks.blank < 0 and last is not None and last.role == "paragraph" and last.parent is None:
            title = blocks.text[last.body_at : last.core_end].rstrip(ln.INVISIBLE)
            if len(title) <= _MAX_SETEXT and "\n" not in title and "\r" not in title:
                blocks.done.pop()
                blocks.at = last.start
                self._heading(blocks.text[last.start : last.end] + line, level, sc.title_of(title))
                return True
        if body[0] == "=":
            return False
        blocks.close_list()
        blocks.add(SegmentKind.PROSE, "", line)
        return True

    def _front_matter(self) -> None:
        """Take `---`, lines of keys, `---` at the very start (T36)."""
        for end in range(1, min(len(self._lines), _MAX_FRONT_MATTER)):
            line = self._lines[end]
            if line.rstrip() == "---":
                self.blocks.add(SegmentKind.PROSE, "", "".join(self._lines[: end + 1]))
                self._next = end + 1
                return
            if line.strip() and ":" not in line and line[0] not in " \t-#":
                return

    def _numbered_heading(self, line: str, body: str, indent: int, behind: int, number: int) -> bool:
        """Take a numbered line as a section heading where the profile says that it is one (T20)."""
        mode, (base, last) = self._profile.numbered, self._numbered
        if mode == "never" or (base >= 0 and abs(indent - base) > _SLACK):
            return False
        title = body[behind : behind + 2 * _MAX_SETEXT].rstrip(ln.INVISIBLE)
        if mode == "deep":
            if not (title.endswith(":") and self.blocks.sections.numberable) or (base < 0 and self.blocks.stack):
                return False
            if self._peek_indent() <= indent:
                return False
        elif sc.normal(title) not in self._profile.titles:
            colon = title.find(":")
            if 0 < colon < len(title) - 1 and sc.normal(title[:colon]) in self._profile.titles:
                cut = len(line) - len(body) + behind + colon + 1  # text behind a known title: the line is heading and paragraph
                line, self._carry = line[:cut], line[cut:]
                title = title[:colon]
            elif not title.endswith(":") or number <= last or (base < 0 and self.blocks.stack):
                return False
        self._numbered = (indent if base < 0 else base, number)
        self._heading(line, sc.NUMBERED, sc.title_of(title))
        return True

    def _label(self, line: str, body: str) -> bool:
        """Take `PENDING: x` as an entry, `PENDING:` alone as a heading (T19)."""
        colon = body.find(":", 0, _MAX_LABEL)
        name = body[: max(colon, 0)]
        if not (name.isupper() and name.replace("_", "").replace(" ", "").isalnum() and body[colon + 1 : colon + 2] in " \t\r\n"):
            return False
        if not body[colon + 1 :].strip(ln.INVISIBLE):
            self._heading(line, sc.LABEL, name)
            return True
        self.blocks.close_list()
        self.blocks.sections.open(sc.LABEL, name)
        block = self.blocks.add(SegmentKind.ENTRY, "label", line)
        block.body_at = block.start + len(line) - len(body) + colon + 1
        return True
