"""The scanner's place in the lines: what comes next, and how several lines are taken at once."""

from winnow.compaction import lines as ln
from winnow.compaction.blocks import Block, Blocks
from winnow.compaction.profiles.profile import Profile
from winnow.contracts.vocabulary import SegmentKind


class Cursor:
    """Lines, the index of the next one, and the blocks so far. The loop has already taken the line at hand."""

    def __init__(self, text: str, lines: list[str], start: int, end: int, profile: Profile) -> None:
        self.blocks = Blocks(text, start, end, profile)
        self.warnings: list[str] = []
        self._profile = profile
        self._lines = lines
        self._next = 0  # index of the next line
        self._carry: str | None = None  # rest of a line whose first part was handled alone

    def _take(self, block: Block, end: int) -> None:
        self.blocks.extend(block, sum(map(len, self._lines[self._next : end])))
        self._next = end

    def _rest(self, kind: SegmentKind) -> None:
        self.blocks.add_rest(kind)
        self._next = len(self._lines)
        self._carry = None

    def _close_of(self, fence: str) -> int:
        """Return the index behind the line that closes `fence`, -1 where none does."""
        for at in range(self._next, len(self._lines)):
            if ln.closes(self._lines[at], fence):
                return at + 1
        return -1

    def _peek_indent(self) -> int:
        """Return the indentation of the next line that is not blank, -1 at the end."""
        for at in range(self._next, len(self._lines)):
            line = self._lines[at]
            body = line.lstrip(ln.INVISIBLE)
            if body:
                return ln.indent_of(line[: len(line) - len(body)])
        return -1

    def _opaque(self) -> None:
        """A fence that is never closed: the rest could be anything, nothing of it is removed (T04)."""
        self.warnings.append("fence_never_closed")
        self._rest(SegmentKind.OPAQUE)
