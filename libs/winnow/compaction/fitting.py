"""Whether outputs are this span's at all: what agent and users name comes back in the outputs that answer them."""

from typing import Final

from winnow.compaction.corpus import Corpus
from winnow.compaction.roles import Role

#: Share of common words from which on outputs and talk are of one span. On sourcebench dev every span has 0.16 or more (all but one 0.2),
#: and outputs of another kind of work have 0.15 at most.
_ENOUGH: Final = 0.2
#: Words below which nothing can be said of it: an agent that says next to nothing of what it does.
_FEW: Final = 8
#: Who says what outputs answer to.
_TALK: Final = frozenset({Role.USER, Role.AGENT})


def fitting(corpus: Corpus) -> float:
    """How well the outputs fit what agent and users say, 0 to 1; the same for all entries of a boundary. Linear in the span.

    Distinct words that both say, by the words of whoever says fewer, against `_ENOUGH`. 1 where agent and users hardly say anything, 0
    where there is no output.
    """
    outputs = set[str]().union(*map(corpus.stream.of, range(len(corpus.passages))))
    if not outputs:
        return 0.0
    said = set[str]().union(*map(corpus.stream.of, [number for number, role in enumerate(corpus.role) if role in _TALK]))
    return 1.0 if len(said) < _FEW else min(1.0, len(outputs & said) / min(len(outputs), len(said)) / _ENOUGH)
