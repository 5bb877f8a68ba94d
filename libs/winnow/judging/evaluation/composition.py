"""What summaries consist of: the composition analysis of the source-judged compaction paper, over whatever was stored. Pure.

Unsupported means: the named judge's score is below 0.5. Runs in which a boundary was enforced stand apart, because pruning changes the next
candidate. Beside each share stands the same by root source, since in shadow mode an unsupported entry is a source one boundary later.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple

from winnow.contracts.vocabulary import RootSource, SectionClass
from winnow.judging.evaluation.carrying import follow
from winnow.judging.evaluation.labelled import is_reasoning

#: Score from which the analysis calls an entry supported, whatever the fleet's threshold is (the published study's).
SUPPORTED_FROM: Final = 0.5
#: Thresholds at which the pruned share is told; the published study varies it from 0.3 to 0.7.
THRESHOLDS: Final = (0.3, 0.4, 0.5, 0.6, 0.7)
#: Summaries after the first appearance at which presence is told.
DISTANCES: Final = (1, 2, 3)


class EntryRow(NamedTuple):
    """One stored entry with the named judge's score. Rows come ordered by fleet, run, summary and n."""

    fleet: str
    run: str
    summary: int  # place of its summary among those of the run that the judge scored, from 1
    boundary_index: int  # number of the boundary, as the host counts
    enforced: bool  # some boundary of the run was enforced
    n: int
    section: str
    section_class: SectionClass
    text: str
    score: float | None
    root: RootSource | None  # None: nothing was decided
    decision: str | None  # kept or pruned, by whichever judge decided; None: nothing was

    @property
    def unsupported(self) -> bool | None:
        """Below the threshold of the analysis; None where there is no score."""
        return None if self.score is None else self.score < SUPPORTED_FROM

    @property
    def unrooted(self) -> bool | None:
        """No root source; None where nothing was decided or the root is not known."""
        return None if self.root in {None, RootSource.PREVIOUS_UNKNOWN} else self.root is RootSource.NONE

    @property
    def reasoning(self) -> bool:
        """It stands in a section of the compressor's own reasoning."""
        return is_reasoning(self.section, self.section_class)

    @property
    def forward(self) -> bool:
        """It stands in a forward-looking section."""
        return self.section_class is SectionClass.FORWARD

    @property
    def stage(self) -> str:
        """Boundary 1, 2 or later."""
        return str(self.boundary_index) if self.boundary_index <= 2 else "later"  # noqa: PLR2004  as the study groups them


@dataclass(slots=True)
class Share:
    """A share that is counted up."""

    n: int = 0
    of: int = 0

    def add(self, answer: bool | None) -> None:  # noqa: FBT001  the answer that is counted
        """Count one answer; None is not counted."""
        if answer is not None:
            self.n += 1
            self.of += answer

    @property
    def value(self) -> float | None:
        """The share, None where nothing was counted."""
        return self.of / self.n if self.n else None


@dataclass(slots=True)
class Both:
    """A share by score and the same by root source."""

    score: Share = field(default_factory=Share)
    root: Share = field(default_factory=Share)

    def add(self, row: EntryRow) -> None:
        """Count one entry."""
        self.score.add(row.unsupported)
        self.root.add(row.unrooted)


@dataclass(slots=True)
class Composition:
    """The counts of one regime: runs that were only watched, or runs in which a boundary was enforced."""

    runs: int = 0
    summaries: int = 0
    entries: int = 0
    unscored: int = 0
    #: By section, with "all", "reasoning" and "forward" beside them.
    sections: dict[str, Both] = field(default_factory=dict)
    forward: set[str] = field(default_factory=set)
    #: By boundary (1, 2, later): number of summaries, all entries, reasoning entries.
    stages: dict[str, tuple[Share, Both, Both]] = field(default_factory=dict)
    #: By (slice, basis, unsupported, distance): present d summaries after first appearance.
    persistence: dict[tuple[str, str, bool, int], Share] = field(default_factory=dict)
    #: By slice: of the entries with a match in the previous summary, those in the same words.
    exact: dict[str, Share] = field(default_factory=dict)
    #: By slice: of the unsupported entries after a run's first summary, those without a match in the previous one.
    regenerated: dict[str, Share] = field(default_factory=dict)
    #: By (section, later): kept.
    kept: dict[tuple[str, bool], Share] = field(default_factory=dict)
    pruned: Share = field(default_factory=Share)
    forward_pruned: Share = field(default_factory=Share)
    forward_entries: Share = field(default_factory=Share)
    tokens: int = 0
    tokens_cut: int = 0
    #: By (slice, threshold): score below it.
    below: dict[tuple[str, float], Share] = field(default_factory=dict)
    capped: int = 0


def compose(
    rows: Iterable[EntryRow], count_tokens: Callable[[str], int], onto: dict[bool, Composition] | None = None
) -> dict[bool, Composition]:
    """Count everything, one run at a time; by whether a boundary of the run was enforced.

    `onto` are the counts of other runs, which are counted on: so a store can be read some whole runs at a time.
    """
    found = {} if onto is None else onto
    for _, of_run in groupby(rows, key=lambda row: (row.fleet, row.run)):
        run = list(of_run)
        regime = found.setdefault(run[0].enforced, Composition())
        summaries = [list(group) for _, group in groupby(run, key=lambda row: row.summary)]
        regime.runs += 1
        for summary in summaries:
            _summary(regime, summary, count_tokens)
        _follow(regime, summaries)
    return found


def _slices(row: EntryRow) -> Iterator[str]:
    """The slices that an entry counts in."""
    yield "all"
    if row.reasoning:
        yield "reasoning"


def _summary(regime: Composition, summary: list[EntryRow], count_tokens: Callable[[str], int]) -> None:
    """Count one summary."""
    regime.summaries += 1
    number, everything, reasoning = regime.stages.setdefault(summary[0].stage, (Share(), Both(), Both()))
    number.n += 1
    for row in summary:
        regime.entries += 1
        regime.unscored += row.score is None
        everything.add(row)
        if row.reasoning:
            reasoning.add(row)
        for name in (f"section={row.section}", *_slices(row), *(("forward",) if row.forward else ())):
            regime.sections.setdefault(name, Both()).add(row)
        if row.forward:
            regime.forward.add(f"section={row.section}")
        for name in _slices(row):
            for threshold in THRESHOLDS:
                regime.below.setdefault((name, threshold), Share()).add(None if row.score is None else row.score < threshold)
        _decided(regime, row, count_tokens)


def _decided(regime: Composition, row: EntryRow, count_tokens: Callable[[str], int]) -> None:
    """Count what was decided for an entry."""
    if row.decision is None:
        return
    pruned = row.decision == "pruned"
    regime.pruned.add(pruned)
    regime.forward_entries.add(row.forward)
    if pruned:
        regime.forward_pruned.add(row.forward)
    later = row.boundary_index > 1
    for name in (f"section={row.section}", "all"):
        regime.kept.setdefault((name, later), Share()).add(not pruned)
    tokens = count_tokens(row.text)
    regime.tokens += tokens
    regime.tokens_cut += tokens * pruned


def _follow(regime: Composition, summaries: list[list[EntryRow]]) -> None:
    """Count how long the entries of a run stay, and which came back without having stayed."""
    followed = follow([[row.text for row in summary] for summary in summaries])
    regime.capped += followed.capped
    for chain in followed.chains:
        _stays(regime, summaries[chain.first][chain.entry], chain.length, len(summaries) - chain.first)
    for summary, matches in zip(summaries[1:], followed.matches[1:], strict=True):
        for row, one in zip(summary, matches.found, strict=True):
            for name in _slices(row):
                if one is not None:
                    regime.exact.setdefault(name, Share()).add(one.exact)
                if row.unsupported:
                    regime.regenerated.setdefault(name, Share()).add(one is None)


def _stays(regime: Composition, row: EntryRow, length: int, possible: int) -> None:
    """Count for an entry in how many summaries in a row it stands, of those that the run has from its first appearance on."""
    for basis, unsupported in (("score", row.unsupported), ("root", row.unrooted)):
        if unsupported is None:
            continue
        for distance in DISTANCES:
            if distance < possible:
                for name in _slices(row):
                    regime.persistence.setdefault((name, basis, unsupported, distance), Share()).add(length > distance)


def sections_of(regime: Composition) -> list[str]:
    """The sections of a regime, the commonest first."""
    names = Counter({name: both.score.n for name, both in regime.sections.items() if name.startswith("section=")})
    return [name for name, _ in sorted(names.items(), key=lambda item: (-item[1], item[0]))]
