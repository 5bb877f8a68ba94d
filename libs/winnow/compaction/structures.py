"""Blocks that are more than a line of text: fences, quotes, tables, elements, and what hosts put in."""

from typing import Final

from winnow.compaction import lines as ln
from winnow.compaction import sections as sc
from winnow.compaction.blocks import Block
from winnow.compaction.headings import Headings
from winnow.compaction.profiles.profile import Profile
from winnow.contracts.vocabulary import SegmentKind

#: Characters; the longest element name that is looked for.
_MAX_NAME: Final = 48
#: Element tags with text behind them in one line; each is a copy of the rest, so a line of nothing but tags would cost its square.
_MAX_CUTS: Final = 8


class Structures(Headings):
    """Handlers that take whole structures at once."""

    def __init__(self, text: str, lines: list[str], start: int, end: int, profile: Profile) -> None:
        super().__init__(text, lines, start, end, profile)
        self._cuts = 0  # tags that were cut off the line at hand
        self._closed = False  # behind the element around the whole

    def _fence(self, line: str, fence: str, indent: int) -> bool:
        if self._carry is not None:
            return False  # the rest of this line is not the fence's
        end = self._close_of(fence)
        if end < 0:
            if self.blocks.inside_list(indent) and self.blocks.owner(indent) is self.blocks.done[-1]:
                self.blocks.done[-1].truncated = True  # its own fence is cut off from it
            self._opaque()
            return True
        self._take(self.blocks.attach(SegmentKind.ENTRY, "fence", line, indent), end)
        return True

    def _bullet_fence(self, block: Block, fence: str | None) -> None:
        if fence is None or self._carry is not None:
            return
        end = self._close_of(fence)
        if end >= 0:
            self._take(block, end)
            return
        self.blocks.done.pop()  # the bullet's own line opens the fence: it is opaque too
        self.blocks.at = block.start
        self._opaque()

    def _quote(self, line: str, indent: int) -> bool:
        last = self.blocks.done[-1] if self.blocks.done else None
        if last is not None and last.role == "quote" and self.blocks.blank < 0:
            self.blocks.extend(last, len(line))
        else:
            self.blocks.attach(SegmentKind.ENTRY, "quote", line, indent)
        return True

    def _table(self, line: str, indent: int) -> bool:
        """Take a table: header and dashes stay, each row is an entry (T12)."""
        blocks, lines = self.blocks, self._lines
        if self._carry is not None or self._next >= len(lines) or not ln.is_separator(lines[self._next]) or ln.is_separator(line):
            return False
        parent = lead = None
        if blocks.inside_list(indent):
            parent = blocks.owner(indent)
            blocks.own_blank()
        else:
            lead = blocks.introduction()
            blocks.close_list()
        self._take(blocks.add(SegmentKind.TABLE_HEAD, "", line), self._next + 1)
        piped = line.lstrip(ln.INVISIBLE)[0] == "|"
        while self._next < len(lines):
            row = lines[self._next]
            body = row.lstrip(ln.INVISIBLE)
            if "|" not in row or (body[0] != "|" if piped else ln.fence_of(body) or body[0] in "#>"):
                break
            block = blocks.add(SegmentKind.TABLE_HEAD if ln.is_separator(row) else SegmentKind.ENTRY, "row", row)
            block.parent, block.lead = parent, lead
            self._next += 1
        return True

    def _before_closing(self, line: str, body: str) -> tuple[str, str]:
        """Cut the open element's closing tag off the end of a line with text before it."""
        element = self.blocks.sections.element
        cut = line.rfind(f"</{element}>") if element else -1
        if cut <= len(line) - len(body) or line[cut + len(element or "") + 3 :].strip(ln.INVISIBLE):
            return line, body
        self._carry = line[cut:]
        line = line[:cut]
        return line, line.lstrip(ln.INVISIBLE)

    def _angle(self, line: str, body: str) -> bool:
        behind = body.find(">", 0, _MAX_NAME)
        name = body[1:behind]
        closing = name.startswith("/")
        name = name.removeprefix("/")
        if name in self._profile.appended and not closing and self._carry is None:
            self._appended(line, f"</{name}>")
            return True
        wrapper = name in self._profile.wrappers
        if not wrapper and name not in self._profile.elements:
            return False
        rest = body[behind + 1 :]
        if rest.strip(ln.INVISIBLE):
            if self._cuts == _MAX_CUTS:
                return False
            self._cuts += 1
            line, self._carry = line[: len(line) - len(rest)], rest + (self._carry or "")
        if wrapper:
            self.blocks.close_list()
            self.blocks.add(SegmentKind.HEADING, "", line)
            self._closed = closing
            self._end_preamble()
        elif closing:
            self.blocks.close_list()
            self.blocks.add(SegmentKind.HEADING, "", line)
            self.blocks.sections.close(name)
        else:
            self._heading(line, sc.ELEMENT, name)
        return True

    def _appended(self, line: str, closing: str) -> None:
        """Take an element that the host appended: to its closing tag, or to the end."""
        blocks, end = self.blocks, self._next
        if closing not in line:
            while end < len(self._lines) and closing not in self._lines[end]:
                end += 1
            if end == len(self._lines):
                self._rest(SegmentKind.HOST)
                return
            end += 1
        blocks.close_list()
        self._take(blocks.add(SegmentKind.HOST, "", line), end)

    def _mark(self, line: str) -> None:
        """Take a truncation marker: the entries beside it are cut (T25)."""
        blocks = self.blocks
        if blocks.done:
            blocks.done[-1].truncated = True
        blocks.close_list()
        blocks.cut_before = False
        blocks.add(SegmentKind.HOST, "", line)
        blocks.cut_before = True

    def _pin(self, line: str) -> None:
        """Take a line that the host audits for, with the JSON string below it where the label stands alone."""
        self.blocks.close_list()
        block = self.blocks.add(SegmentKind.PINNED, "", line)
        alone = line.rstrip(ln.INVISIBLE).endswith(":") and self._next < len(self._lines) and self._carry is None
        if alone and self._lines[self._next].lstrip(ln.INVISIBLE).startswith('"'):
            self._take(block, self._next + 1)
