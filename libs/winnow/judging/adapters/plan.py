"""How a boundary's entries go into requests that fit the judge's context. Pure.

One request wherever it fits. Else in fixed stages, never silently: the entries are split over requests, each with task, R and M whole and
the evidence of its own entries; only for an entry that does not fit alone its evidence is trimmed, worst rank first; then R is abridged,
then M, head and tail kept; what still does not fit has no request.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from winnow.judging.adapters import layout
from winnow.judging.adapters.material import Item, Material, Piece
from winnow.judging.adapters.tokens import Counter

#: Tokens of the JSON around one piece: quotes, commas, field names.
_AROUND: Final = 4
#: An entry number as long as any, to count a question by.
_ANY: Final = 99_999
#: Share of the state that R or M may have once they are abridged.
_ABRIDGED_SHARE: Final = 0.25
#: Characters of a token, to cut by; on the low side, so that one cut is enough for ordinary text.
_CUT_CHARS: Final = 2
#: Characters that stay of the shortest abridged text.
_SHORTEST: Final = 200


class Stage(StrEnum):
    """How far a request had to be shrunk, in this order."""

    WHOLE = "whole"
    SPLIT = "split"
    EVIDENCE_TRIMMED = "evidence_trimmed"
    RETAINED_ABRIDGED = "retained_abridged"
    PREVIOUS_ABRIDGED = "previous_abridged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Tokens that one request may have, as the caller counts them."""

    #: State and questions together.
    total: int
    #: State alone.
    state: int
    #: The envelope: model name, field names, instructions beside the state. Reserved before anything is fitted.
    envelope: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One request: entries with the evidence that they are judged by."""

    material: Material
    items: tuple[Item, ...]
    passages: tuple[Piece, ...]
    stage: Stage
    #: Passages that were retrieved for its entries and left out.
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All requests of a boundary, and the entries that no request has room for."""

    parts: tuple[Part, ...]
    left: tuple[Item, ...] = ()


@dataclass(slots=True)
class _Open:
    """A request that is being filled."""

    items: list[Item] = field(default_factory=list)
    passages: set[int] = field(default_factory=set)
    state: int = 0
    questions: int = 0


class Planner:
    """Plans requests for one judge."""

    def __init__(self, budget: Budget, count: Counter) -> None:
        """`count` should err on the large side: a request that is planned too large is refused and pays nothing back."""
        self._budget = budget
        self._count = count

    def plan(self, material: Material) -> Plan:
        """The requests for all entries of `material`, in their order as far as they fit; no entries, no requests."""
        if not material.items:
            return Plan(parts=())
        question = self._count(layout.encoded({layout.entry_id(_ANY): {"type": "noul", "instructions": layout.question(_ANY)}})) + _AROUND
        filling = _Filling(self._budget, self._count, question, material)
        parts, left = filling.packed(material.items, Stage.WHOLE)
        if not left and len(parts) == 1:
            return Plan(parts=tuple(parts))
        parts = [replace(part, stage=Stage.SPLIT) for part in parts]
        parts += filling.trimmed(left)
        left = filling.left
        for stage, shrink in ((Stage.RETAINED_ABRIDGED, self._without_retained), (Stage.PREVIOUS_ABRIDGED, self._without_previous)):
            if not left:
                break
            material = shrink(material)
            filling = _Filling(self._budget, self._count, question, material)
            more, rest = filling.packed(left, stage)
            parts += more
            parts += [replace(part, stage=stage) for part in filling.trimmed(rest)]
            left = filling.left
        order = {item.n: at for at, item in enumerate(material.items)}
        return Plan(parts=tuple(sorted(parts, key=lambda p: order[p.items[0].n])), left=tuple(left))

    def _without_retained(self, material: Material) -> Material:
        """R cut to its share. Calls that have no result yet stay whole: work under way may not vanish."""
        room = int(self._budget.state * _ABRIDGED_SHARE)
        fixed = sum(self._count(turn.text) for turn in material.retained if turn.pending)
        loose = [turn for turn in material.retained if not turn.pending]
        share = max(0, room - fixed) // max(1, len(loose))
        return replace(
            material, retained=tuple(t if t.pending else replace(t, text=self._abridged(t.text, share)) for t in material.retained)
        )

    def _without_previous(self, material: Material) -> Material:
        """M cut to its share."""
        if material.previous is None:
            return material
        return replace(material, previous=self._abridged(material.previous, int(self._budget.state * _ABRIDGED_SHARE)))

    def _abridged(self, text: str, tokens: int) -> str:
        """Head and tail of `text`, together about `tokens` long; the text itself where it is no longer."""
        if self._count(text) <= tokens:
            return text
        keep = max(_SHORTEST, tokens * _CUT_CHARS)
        while True:
            cut = abridged(text, keep)
            if keep <= _SHORTEST or self._count(cut) <= tokens:
                return cut
            keep //= 2


class _Filling:
    """Fills requests that share one frame. The tokens of each piece are counted once and added, which no whole exceeds but by rounding."""

    def __init__(self, budget: Budget, count: Counter, question: int, material: Material) -> None:
        self._material = material
        self._question = question
        self._frame = count(layout.encoded(layout.frame(material))) + _AROUND
        self._room_state = budget.state
        self._room = budget.total - budget.envelope
        self._count = count
        self._passage: dict[int, int] = {}
        #: Entries that `trimmed` found no room for.
        self.left: list[Item] = []

    def packed(self, items: Sequence[Item], stage: Stage) -> tuple[list[Part], list[Item]]:
        """Requests with the evidence whole, and the entries that do not fit alone."""
        parts: list[Part] = []
        left: list[Item] = []
        filling = self._empty()
        for item in items:
            if self._add(filling, item, item.passages):
                continue
            if filling.items:
                parts.append(self._part(filling, stage))
                filling = self._empty()
                if self._add(filling, item, item.passages):
                    continue
            left.append(item)
        if filling.items:
            parts.append(self._part(filling, stage))
        return parts, left

    def trimmed(self, items: Sequence[Item]) -> list[Part]:
        """A request for each entry that does not fit alone, with as much of its evidence as fits, best first; without any it has none.

        What does not fit with its best passage is put into `left`.
        """
        parts: list[Part] = []
        self.left = []
        for item in items:
            for keep in range(len(item.passages) - 1, 0, -1):
                filling = self._empty()
                if self._add(filling, item, item.passages[:keep]):
                    parts.append(replace(self._part(filling, Stage.EVIDENCE_TRIMMED), truncated=True))
                    break
            else:
                self.left.append(item)
        return parts

    def _empty(self) -> _Open:
        """A request with nothing but its frame."""
        return _Open(state=self._frame)

    def _add(self, filling: _Open, item: Item, passages: Sequence[int]) -> bool:
        """Put an entry with its evidence into a request, where there is room."""
        more = self._count(layout.encoded({layout.entry_id(item.n): item.text})) + _AROUND
        more += sum(self._cost(i) for i in dict.fromkeys(passages) if i not in filling.passages)
        state, questions = filling.state + more, filling.questions + self._question
        if state > self._room_state or state + questions > self._room:
            return False
        filling.items.append(item)
        filling.passages.update(passages)
        filling.state, filling.questions = state, questions
        return True

    def _cost(self, passage: int) -> int:
        """Tokens of a passage; counted once."""
        known = self._passage.get(passage)
        if known is None:
            known = self._passage[passage] = self._count(layout.encoded(layout.evidence(self._material.passages[passage]))) + _AROUND
        return known

    def _part(self, filling: _Open, stage: Stage) -> Part:
        """The request, its passages in order of the pool."""
        return Part(material=self._material, items=tuple(filling.items), passages=tuple(self._pool(filling.passages)), stage=stage)

    def _pool(self, ids: set[int]) -> Iterator[Piece]:
        """Passages by number, in order of the span."""
        return (piece for piece in self._material.passages.values() if piece.id in ids)


def abridged(text: str, keep: int) -> str:
    """Head and tail of `text`, `keep` characters together, with a word on what was left out between them."""
    if len(text) <= keep:
        return text
    head, tail = keep - keep // 2, keep // 2
    return f"{text[:head]}\n[… {len(text) - keep} characters left out …]\n{text[len(text) - tail :]}"
