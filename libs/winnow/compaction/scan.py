"""The scanner: one pass over the lines of a summary's body.

Each line goes to the handler of its first sign, which extends the last block or adds one. Open bullets form a stack by indentation, and
whatever closes levels pops each once; a fence looks for its end once and is done with the lines in between: the pass is linear.
"""

from typing import Final

from winnow.compaction import lines as ln
from winnow.compaction import sections as sc
from winnow.compaction.blocks import NEST, Block, Blocks, Role
from winnow.compaction.paths import is_directory, is_path
from winnow.compaction.profiles.profile import Profile
from winnow.contracts.vocabulary import SegmentKind

#: Roles whose block goes on in the next line of plain text.
_OPEN_ROLES: Final = frozenset({"bullet", "paragraph", "label"})
#: Signs that only ever start text: the common case, kept off the dispatch.
_TEXT_SIGNS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz\"'$/@&%,;.!?{}")
#: Characters; the longest label or element name that is looked for.
_MAX_NAME: Final = 48
#: Characters; a longer line above `---` is a paragraph above a rule, not a heading.
_MAX_SETEXT: Final = 200
#: Lines; front matter is shorter.
_MAX_FRONT_MATTER: Final = 100
#: Element tags with text behind them in one line; each is a copy of the rest, so a line of nothing but tags would cost its square.
_MAX_CUTS: Final = 8
#: Columns by which a numbered section heading may differ from the first one.
_SLACK: Final = 1
#: Columns; CommonMark's limit, deeper is code.
_MAX_HEADING_INDENT: Final = 3


class Scanner:
    """The pass. `blocks` and `warnings` are its results."""

    def __init__(self, text: str, lines: list[str], start: int, end: int, profile: Profile, *, trees: bool) -> None:
        self.blocks = Blocks(text, start, end, profile)
        self.warnings: list[str] = []
        self.headings = 0  # real ones, that end a preamble
        self._lines = lines
        self._next = 0  # index of the next line
        self._carry: str | None = None  # rest of a line whose first part was handled alone
        self._cuts = 0  # tags that were cut off the line at hand
        self._profile = profile
        self._trees = trees
        self._host_signs = frozenset(suffix[0] for suffix in profile.suffixes)
        self._has_marks = "truncated" in text
        self._bare = False  # in a section where each line is an entry
        self._closed = False  # behind the element around the whole
        self._numbered: tuple[int, int] = (-1, 0)  # indentation of the first numbered heading, number of the last
        self._lead: Block | None = None  # what introduces the open list
        self._lead_indent = 0

    def run(self) -> None:
        """Handle all lines."""
        blocks, lines, total = self.blocks, self._lines, len(self._lines)
        elements = bool(self._profile.elements)
        if blocks.at == 0 and lines and lines[0].rstrip() == "---":
            self._front_matter()
        while True:
            if self._carry is not None:
                line, self._carry = self._carry, None
            elif self._next < total:
                line = lines[self._next]
                self._next += 1
                self._cuts = 0
            else:
                break
            body = line if "!" <= line[0] <= "~" else line.lstrip(ln.INVISIBLE)
            if not body:
                if blocks.blank < 0:
                    blocks.blank = blocks.at
                blocks.at += len(line)
                continue
            if elements and "</" in line:
                line, body = self._before_closing(line, body)
            self._line(line, body, 0 if body is line else ln.indent_of(line[: len(line) - len(body)]))
        blocks.flush()

    def _line(self, line: str, body: str, indent: int) -> None:
        sign = body[0]
        if sign in self._host_signs and indent <= _MAX_HEADING_INDENT and body.startswith(self._profile.suffixes):
            self._rest(SegmentKind.HOST)
        elif sign in ln.MARKER_STARTS or body[1:2] in {".", ")"}:
            if not (
                (body[2:3] in {sign, " "} and ln.is_rule(body) and self._rule(line, body))
                or self._bullet(line, body, indent)
                or (sign == "*" and self._bold(line, body, indent))
            ):
                self._plain(line, body, indent)
        elif sign in _TEXT_SIGNS or not self._special(sign, line, body, indent):
            self._plain(line, body, indent)

    def _special(self, sign: str, line: str, body: str, indent: int) -> bool:
        if sign == "#":
            return self._atx(line, body, indent)
        if sign in "`~":
            fence = ln.fence_of(body)
            return fence is not None and self._fence(line, fence, indent)
        if sign == "<":
            return self._angle(line, body)
        if sign == ">":
            return self._quote(line, indent)
        if sign == "_":
            return (ln.is_rule(body) and self._rule(line, body)) or self._bold(line, body, indent)
        return sign == "=" and self._rule(line, body)

    def _plain(self, line: str, body: str, indent: int) -> None:
        if "|" in line and self._table(line, indent):
            return
        if self._has_marks and ln.is_truncation_marker(body):
            self._mark(line)
        else:
            self._text(line, body, indent)

    def _rest(self, kind: SegmentKind) -> None:
        self.blocks.add_rest(kind)
        self._next = len(self._lines)
        self._carry = None

    # headings and rules

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
        """Plain paragraphs before the first real heading are no entries (T15); a bold lead-in is."""
        self.headings += 1
        if self.headings > 1 or not self._profile.preamble:
            return
        for block in self.blocks.done:
            plain = block.role == "paragraph" and block.parent is None and not self.blocks.text.startswith("**", block.body_at)
            if plain and block.kind is SegmentKind.ENTRY:
                block.kind = SegmentKind.PROSE

    def _atx(self, line: str, body: str, indent: int) -> bool:
        rest = body.lstrip("#")
        level = len(body) - len(rest)
        if level > 6 or indent > _MAX_HEADING_INDENT or self.blocks.inside_list(indent):  # noqa: PLR2004 # Markdown's levels
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

    def _peek_indent(self) -> int:
        """Return the indentation of the next line that is not blank, -1 at the end."""
        for at in range(self._next, len(self._lines)):
            line = self._lines[at]
            body = line.lstrip(ln.INVISIBLE)
            if body:
                return ln.indent_of(line[: len(line) - len(body)])
        return -1

    # lists

    def _bullet(self, line: str, body: str, indent: int) -> bool:  # noqa: C901, PLR0912 # the hot path: a call a line less is a tenth of it
        match = ln.match_marker(body)
        if match is None:
            return False
        number = match[1]
        blocks, stack, behind = self.blocks, self.blocks.stack, match.end()
        if number is not None:
            if int(number) > ln.MAX_OPENING_NUMBER and not stack:
                return False
            if self._numbered_heading(line, body, indent, behind, int(number)):
                return True
        ordered = body[0] not in ln.BULLET_SIGNS
        if not stack:
            parent = None
            self._lead, self._lead_indent = blocks.introduction(), indent
            blocks.flush()
        else:
            self._nest(indent, ordered=ordered)
            parent = stack[-1][1] if stack else None
            if parent is blocks.done[-1] or self._profile.question_answer:
                grown = self._grown(parent, body, behind)
                if grown is not None:
                    stack.append((indent, grown))
                    blocks.extend(grown, len(line))
                    return True
            if blocks.blank >= 0:
                blocks.own_blank()
            if indent < self._lead_indent:
                self._lead = None
        block = blocks.add(SegmentKind.ENTRY, "bullet", line)
        block.body_at = block.start + len(line) - len(body) + behind
        block.ordered = ordered
        if parent is None:
            block.lead = self._lead
        else:
            block.parent = parent
        stack.append((indent, block))
        if body[behind] in "`~":
            self._bullet_fence(block, ln.fence_of(body[behind:]))
        return True

    def _nest(self, indent: int, *, ordered: bool) -> None:
        """Close the bullets that a bullet with this indentation is not nested below.

        Signs at the indentation of a numbered item that ends in a colon are that item's list.
        """
        stack, text = self.blocks.stack, self.blocks.text
        while stack:
            depth, top = stack[-1]
            if depth + NEST <= indent:
                return
            if depth == indent and top.ordered and not ordered and ln.ends_with_colon(text[top.start : top.core_end]):
                return
            stack.pop()

    def _grown(self, parent: Block | None, body: str, behind: int) -> Block | None:
        """Return the block that this bullet is a part of: a file tree of paths (T01), or a question that it answers."""
        last = self.blocks.done[-1]
        if parent is last and self._trees and self.blocks.blank < 0 and is_path(body[behind:]):
            parent.tree = parent.tree or is_directory(self.blocks.text[parent.body_at : parent.core_end])
            return parent if parent.tree else None
        answers = self._profile.question_answer and last.role == "bullet" and body.startswith("A:", behind)
        return last if answers and self.blocks.text.startswith("Q:", last.body_at) else None

    # blocks of several lines

    def _close_of(self, fence: str) -> int:
        """Return the index behind the line that closes `fence`, -1 where none does."""
        for at in range(self._next, len(self._lines)):
            if ln.closes(self._lines[at], fence):
                return at + 1
        return -1

    def _take(self, block: Block, end: int) -> None:
        self.blocks.extend(block, sum(map(len, self._lines[self._next : end])))
        self._next = end

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

    def _opaque(self) -> None:
        """A fence that is never closed: the rest could be anything, nothing of it is removed (T04)."""
        self.warnings.append("fence_never_closed")
        self._rest(SegmentKind.OPAQUE)

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

    # elements, markers, text

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

    def _label(self, line: str, body: str) -> bool:
        """Take `PENDING: x` as an entry, `PENDING:` alone as a heading (T19)."""
        colon = body.find(":", 0, _MAX_NAME)
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

    def _pin(self, line: str) -> None:
        """Take a line that the host audits for, with the JSON string below it where the label stands alone."""
        self.blocks.close_list()
        block = self.blocks.add(SegmentKind.PINNED, "", line)
        alone = line.rstrip(ln.INVISIBLE).endswith(":") and self._next < len(self._lines) and self._carry is None
        if alone and self._lines[self._next].lstrip(ln.INVISIBLE).startswith('"'):
            self._take(block, self._next + 1)

    def _text(self, line: str, body: str, indent: int) -> None:
        blocks, profile = self.blocks, self._profile
        inside = blocks.inside_list(indent)
        if not inside:
            if profile.pinned_lines and body.startswith(profile.pinned_lines):
                self._pin(line)
                return
            if profile.labels and self._label(line, body):
                return
            if self._bare:
                blocks.close_list()
                self._new(line, body, SegmentKind.ENTRY, "bare")
                return
        last = blocks.done[-1] if blocks.done else None
        if blocks.blank < 0 and last is not None and last.role in _OPEN_ROLES and not self._starts_anew(last, body, indent):
            blocks.extend(last, len(line))
        elif body[0] == "<" and not inside and (body.startswith("<!--") or body.find(">") == len(body.rstrip(ln.INVISIBLE)) - 1):
            blocks.close_list()
            blocks.add(SegmentKind.PROSE, "", line)  # a comment or a lone tag: nothing to judge, and its partner may stand elsewhere
        elif inside:
            blocks.attach(SegmentKind.ENTRY, "paragraph", line, indent)
        else:
            blocks.close_list()
            self._new(line, body, SegmentKind.ENTRY if profile.paragraphs and not self._closed else SegmentKind.PROSE, "paragraph")

    def _new(self, line: str, body: str, kind: SegmentKind, role: Role) -> None:
        block = self.blocks.add(kind, role, line)
        block.body_at = block.start + len(line) - len(body)

    def _starts_anew(self, last: Block, body: str, indent: int) -> bool:
        """Tell whether text right below an open block is no continuation of it."""
        if self._profile.question_answer and body.startswith("Q:"):
            return True
        if last.role == "paragraph":
            return False
        # "Remaining:" between two lists, without a blank line: what it introduces is not below the bullet before it.
        return (
            bool(self.blocks.stack)
            and indent <= self.blocks.stack[0][0]
            and len(body) <= ln.MAX_LEAD_IN
            and not body[0].islower()
            and ln.ends_with_colon(body)
            and self._list_follows()
        )

    def _list_follows(self) -> bool:
        if self._next >= len(self._lines):
            return False
        line = self._lines[self._next]
        body = line.lstrip(ln.INVISIBLE)
        if not body or ln.marker(body) is None:
            return False
        return ln.indent_of(line[: len(line) - len(body)]) <= self.blocks.stack[-1][0]
