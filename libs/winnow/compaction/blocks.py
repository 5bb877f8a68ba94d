"""Blocks: what the scanner cuts a summary into, and the rules of lists that all its handlers share.

Who owns a blank line: the entry before it, if the list that the entry is in goes on after the blank line; nobody otherwise. So removing
entries neither glues two paragraphs together nor leaves a gap in a list.
"""

from typing import Final, Literal

from winnow.compaction.lines import INVISIBLE, MAX_LEAD_IN, ends_with_colon
from winnow.compaction.profiles.profile import Profile
from winnow.compaction.sections import Sections
from winnow.contracts.vocabulary import SectionClass, SegmentKind

Role = Literal["", "bullet", "paragraph", "label", "bare", "fence", "row", "quote"]

#: Columns that a bullet must stand further in than another to be nested below it; models often miss the two or three of CommonMark by one.
NEST = 2
#: What a mere lead-in does not have: a second line, or a sentence before its own.
_SENTENCE = ("\n", "\r", ". ", "; ", "! ")


class Block:
    """A stretch of the text, in characters. Mutable: later lines extend it and may change its kind."""

    # Defaults stand on the class: most blocks differ from few of them, and a summary has dozens of blocks.
    body_at = 0  # behind the marker; for a bullet, label, bare line and paragraph
    ordered = False
    tree = False  # a file tree, with all paths below it
    truncated = False
    parent: "Block | None" = None
    lead: "Block | None" = None
    n = 0  # number of the entry, once it is one

    def __init__(self, kind: SegmentKind, role: Role, start: int, end: int, sections: Sections | None = None) -> None:
        self.kind = kind
        self.role: Role = role
        self.start = start
        self.end = end
        self.core_end = end  # without blank lines that it owns
        self.section = sections.path if sections is not None else ""
        self.section_class = sections.section_class if sections is not None else SectionClass.UNKNOWN


class Blocks:
    """The blocks so far, the position behind them, the open list and the open sections. Blocks follow each other without gaps."""

    def __init__(self, text: str, start: int, end: int, profile: Profile) -> None:
        self.text = text
        self.profile = profile
        self.sections = Sections(profile.section_classes)
        self.done: list[Block] = []
        self.at = start  # start of the line at hand
        self.limit: Final = end
        self.blank = -1  # start of a run of blank lines that nobody owns yet
        self.stack: list[tuple[int, Block]] = []  # open bullets with their indentation, outermost first
        self.pinned = False  # in a section that the host audits for
        self.cut_before = False  # the next block stands behind a truncation marker

    def add(self, kind: SegmentKind, role: Role, line: str) -> Block:
        """Add a block for `line`, at the current position and in the current section."""
        if self.pinned and (kind is SegmentKind.ENTRY or kind is SegmentKind.PROSE):
            kind = SegmentKind.PINNED
        block = Block(kind, role, self.at, self.at + len(line), self.sections)
        if self.cut_before:
            block.truncated = True
            self.cut_before = False
        self.done.append(block)
        self.at = block.end
        return block

    def extend(self, block: Block, size: int) -> None:
        """Let `block`, the last one, take blank lines so far and `size` more characters."""
        self.blank = -1
        self.at += size
        block.core_end = block.end = self.at

    def add_rest(self, kind: SegmentKind) -> Block:
        """Add one block for all that is left."""
        self.close_list()
        block = self.add(kind, "", "")
        self.at = block.end = block.core_end = self.limit
        return block

    def flush(self) -> None:
        """Blank lines so far belong to nobody."""
        if self.blank >= 0:
            self.done.append(Block(SegmentKind.BLANK, "", self.blank, self.at))
            self.blank = -1

    def own_blank(self) -> None:
        """Blank lines so far belong to the last block, an entry of a list that goes on."""
        if self.blank >= 0:
            last = self.done[-1]
            if last.kind is SegmentKind.ENTRY:
                last.end = self.at
                self.blank = -1
            else:
                self.flush()

    def close_list(self) -> None:
        """No bullet is open any more."""
        self.stack.clear()
        self.flush()

    def inside_list(self, indent: int) -> bool:
        """Tell whether a line with this indentation stands below an open bullet."""
        return bool(self.stack) and indent > self.stack[0][0]

    def owner(self, indent: int) -> Block:
        """Return the innermost open bullet that a line with this indentation stands below, and close the deeper ones."""
        while self.stack[-1][0] >= indent:
            self.stack.pop()
        return self.stack[-1][1]

    def attach(self, kind: SegmentKind, role: Role, line: str, indent: int) -> Block:
        """Put `line` below the bullet that it is indented under, or on its own.

        A bullet's segment has no holes: if other entries stand between, what comes after them is an entry of its own with that parent.
        """
        if not self.inside_list(indent):
            lead = self.introduction()
            self.close_list()
            block = self.add(kind, role, line)
            block.lead = lead
            return block
        owner = self.owner(indent)
        last = self.done[-1]
        if last is owner:
            self.extend(owner, len(line))
            return owner
        self.own_blank()
        block = self.add(SegmentKind.ENTRY, role, line)
        block.parent = owner
        if role == "fence" and last.role == "bullet" and ends_with_colon(self.text[last.start : last.core_end]):
            block.lead = last
        return block

    def introduction(self) -> Block | None:
        """Return the paragraph before this line if it introduces what follows (T35).

        Where the profile has no sub-headings of that kind it becomes prose, unless it says something besides.
        """
        last = self.done[-1] if self.done else None
        if last is None or last.role != "paragraph" or not ends_with_colon(self.text[last.start : last.core_end]):
            return None
        line = self.text[last.body_at : last.core_end].strip(INVISIBLE)
        bare = len(line) <= MAX_LEAD_IN and not any(sign in line for sign in _SENTENCE)
        if bare and not self.profile.lead_ins and last.kind is SegmentKind.ENTRY:
            last.kind = SegmentKind.PROSE
        return last
