"""The scanner: one pass over the lines of a summary's body.

Each line goes to the handler of its first sign, which extends the last block or adds one. Open bullets form a stack by indentation, and
whatever closes levels pops each once; a fence looks for its end once and is done with the lines in between: the pass is linear.
"""

from typing import Final

from winnow.compaction import lines as ln
from winnow.compaction.blocks import NEST, Block, Role
from winnow.compaction.headings import MAX_HEADING_INDENT
from winnow.compaction.paths import is_directory, is_path
from winnow.compaction.profiles.profile import Profile
from winnow.compaction.structures import Structures
from winnow.contracts.vocabulary import SegmentKind

#: Roles whose block goes on in the next line of plain text.
_OPEN_ROLES: Final = frozenset({"bullet", "paragraph", "label"})
#: Signs that only ever start text: the common case, kept off the dispatch.
_TEXT_SIGNS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz\"'$/@&%,;.!?{}")


class Scanner(Structures):
    """The pass. `blocks`, `headings` and `warnings` are its results."""

    def __init__(self, text: str, lines: list[str], start: int, end: int, profile: Profile, *, trees: bool) -> None:
        super().__init__(text, lines, start, end, profile)
        self._trees = trees  # file trees are one entry
        self._host_signs = frozenset(suffix[0] for suffix in profile.suffixes)
        self._has_marks = "truncated" in text
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
        if sign in self._host_signs and indent <= MAX_HEADING_INDENT and body.startswith(self._profile.suffixes):
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

    # text

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
