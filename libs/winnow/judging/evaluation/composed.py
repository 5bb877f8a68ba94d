"""From the counts of a composition analysis to its tables and figures."""

from collections.abc import Mapping
from typing import Final

from winnow.contracts.evaluation import Cell, Metric, Table
from winnow.judging.evaluation.composition import DISTANCES, THRESHOLDS, Both, Composition, Share, sections_of
from winnow.judging.evaluation.published import COMPOSITION

#: What a run is called by whether a boundary of it was enforced.
REGIMES: Final = {False: "watched", True: "enforced"}
_STAGES: Final = ("1", "2", "later")
_ROOT_NOTE: Final = (
    "unsupported: score below 0.5; unrooted: no root source, followed through previous summaries. In shadow mode an unsupported entry has "
    "a source one boundary later, the summary itself: the root tells them apart. Entries whose root is not known are not in `unrooted`."
)


def tables_of(found: Mapping[bool, Composition]) -> list[Table]:
    """All tables, runs that were watched first."""
    made = [_sections(found), _stages(found), _persistence(found), _regenerated(found), _kept(found), _pruning(found), _thresholds(found)]
    return [table for table in made if table.rows] + ([_beside(found[False])] if False in found else [])


def figures_of(found: Mapping[bool, Composition]) -> list[Metric]:
    """The figures that gates can ask for; those of enforced runs have `enforced` before their slice."""
    made: list[Metric] = []
    for enforced, regime in sorted(found.items()):
        before = "enforced " if enforced else ""
        for name, both in regime.sections.items():
            made += [
                _metric("unsupported", before + name, both.score, "score below 0.5"),
                _metric("unrooted", before + name, both.root, "no root source"),
            ]
        for (name, basis, unsupported, distance), share in regime.persistence.items():
            if basis == "score" and unsupported:
                made.append(_metric(f"persistence_{distance}", before + name, share, "unsupported entries still present"))
        for name, share in regime.exact.items():
            made.append(_metric("carried_exactly", before + name, share, "of carried entries, those in the same words"))
        made.append(_metric("pruned", f"{before}all", regime.pruned, "entries pruned, or that would have been"))
    return made


def _metric(name: str, slice_: str, share: Share, method: str) -> Metric:
    """One share as a figure."""
    note = "" if share.n else "no entries"
    return Metric(name=name, slice=slice_.strip() or "all", value=share.value, n=share.n, positives=share.of, method=method, note=note)


def _both(both: Both) -> list[Cell]:
    """A share by score and by root."""
    return [both.score.n, both.score.of, both.score.value, both.root.of, both.root.value]


def _regimes(found: Mapping[bool, Composition]) -> list[tuple[str, Composition]]:
    """The regimes by name."""
    return [(REGIMES[enforced], found[enforced]) for enforced in sorted(found)]


def _sections(found: Mapping[bool, Composition]) -> Table:
    """Unsupported by section."""
    rows: list[tuple[Cell, ...]] = []
    for name, regime in _regimes(found):
        total = regime.sections.get("all", Both()).score
        for section in (*sections_of(regime), "forward", "reasoning", "all"):
            both = regime.sections.get(section)
            if both is not None:
                share = both.score.n / total.n if total.n else None
                rows.append((name, section.removeprefix("section="), section in regime.forward, share, *_both(both)))
    columns = ("runs", "section", "forward-looking", "share of entries", "n", "unsupported", "share", "unrooted", "share unrooted")
    return Table(name="composition_sections", title="Unsupported entries by section", columns=columns, rows=tuple(rows), note=_ROOT_NOTE)


def _stages(found: Mapping[bool, Composition]) -> Table:
    """Unsupported by boundary."""
    rows: list[tuple[Cell, ...]] = []
    for name, regime in _regimes(found):
        for stage in _STAGES:
            if stage in regime.stages:
                number, everything, reasoning = regime.stages[stage]
                mean = reasoning.score.of / number.n
                rows.append((name, stage, number.n, *_both(everything), *_both(reasoning), mean))
    parts = ("n", "unsupported", "share", "unrooted", "share unrooted")
    columns = ("runs", "boundary", "summaries", *parts, *(f"reasoning {part}" for part in parts), "unsupported reasoning entries a summary")
    return Table(name="composition_boundaries", title="Unsupported entries by boundary", columns=columns, rows=tuple(rows), note=_ROOT_NOTE)


def _persistence(found: Mapping[bool, Composition]) -> Table:
    """Still present one, two and three summaries after first appearance."""
    rows: list[tuple[Cell, ...]] = []
    for name, regime in _regimes(found):
        for part in ("all", "reasoning"):
            for basis in ("score", "root"):
                for unsupported in (False, True):
                    shares = [regime.persistence.get((part, basis, unsupported, distance), Share()) for distance in DISTANCES]
                    if shares[0].n:
                        word = ("unsupported" if unsupported else "supported") + ("" if basis == "score" else " by root")
                        rows.append((name, part, word, *(cell for share in shares for cell in (share.n, share.value))))
    columns = ("runs", "entries", "at first", *(word for d in DISTANCES for word in (f"n {d} later", f"present {d} later")))
    note = (
        "Of the entries that a summary is the first to have, the share still present: matched from summary to summary by text (bullet, "
        "case and spacing aside), else by a character similarity of at least 0.9. n counts those whose run has a summary at that distance."
    )
    capped = sum(regime.capped for regime in found.values())
    if capped:
        note += f" In {capped} summaries too many entries were alike in length to compare all; pairs were left out."
    return Table(name="composition_persistence", title="Persistence", columns=columns, rows=tuple(rows), note=note)


def _regenerated(found: Mapping[bool, Composition]) -> Table:
    """Exact matches, and unsupported entries that did not stand in the summary before."""
    rows: list[tuple[Cell, ...]] = []
    for name, regime in _regimes(found):
        for part in ("all", "reasoning"):
            exact, again = regime.exact.get(part, Share()), regime.regenerated.get(part, Share())
            if exact.n or again.n:
                rows.append((name, part, exact.n, exact.value, again.n, again.of, again.value))
    columns = ("runs", "entries", "carried", "of these exactly", "unsupported after the first summary", "regenerated", "share regenerated")
    note = "carried: matched in the summary before. regenerated: unsupported and not matched there; the compressor wrote it anew."
    return Table(name="composition_regenerated", title="Carried and regenerated", columns=columns, rows=tuple(rows), note=note)


def _kept(found: Mapping[bool, Composition]) -> Table:
    """Kept share by section, first and later boundaries."""
    rows: list[tuple[Cell, ...]] = []
    for name, regime in _regimes(found):
        for section in (*sections_of(regime), "all"):
            first, later = regime.kept.get((section, False), Share()), regime.kept.get((section, True), Share())
            if first.n or later.n:
                rows.append((name, section.removeprefix("section="), first.n, first.value, later.n, later.value))
    note = "By the decisions of whichever judge decided; pinned entries and scaffold count as kept. In watched runs: would have been."
    columns = ("runs", "section", "n first", "kept first", "n later", "kept later")
    return Table(name="composition_kept", title="Kept share by section", columns=columns, rows=tuple(rows), note=note)


def _pruning(found: Mapping[bool, Composition]) -> Table:
    """Entries pruned and tokens cut."""
    rows: list[tuple[Cell, ...]] = []
    for name, regime in _regimes(found):
        cut = regime.tokens_cut / regime.tokens if regime.tokens else None
        pruned = regime.pruned
        row = (regime.runs, regime.summaries, pruned.n, pruned.of, pruned.value, regime.forward_entries.value, regime.forward_pruned.value)
        rows.append((name, *row, regime.tokens, regime.tokens_cut, cut))
    columns = (
        "runs", "number", "summaries", "decided", "pruned", "share", "forward share of entries", "forward share of pruned", "tokens",
        "tokens cut", "share cut",
    )  # fmt: skip
    note = "Tokens are those of the entries' own texts, without headings. In watched runs: would have been cut."
    return Table(name="composition_pruning", title="Entries pruned and tokens cut", columns=columns, rows=tuple(rows), note=note)


def _thresholds(found: Mapping[bool, Composition]) -> Table:
    """The share below each threshold."""
    rows: list[tuple[Cell, ...]] = []
    for name, regime in _regimes(found):
        for part in ("all", "reasoning"):
            shares = [regime.below.get((part, threshold), Share()) for threshold in THRESHOLDS]
            if shares[0].n:
                rows.append((name, part, shares[0].n, *(share.value for share in shares), _move(shares)))
    columns = ("runs", "entries", "n", *(f"below {threshold:g}" for threshold in THRESHOLDS), "largest move from 0.5")
    return Table(name="composition_thresholds", title="What another threshold would prune", columns=columns, rows=tuple(rows))


def _move(shares: list[Share]) -> float | None:
    """The largest distance of a share from that at 0.5."""
    values = [share.value for share in shares]
    middle = values[THRESHOLDS.index(0.5)]
    return None if middle is None else max(abs(value - middle) for value in values if value is not None)


def _beside(regime: Composition) -> Table:
    """The published figures beside ours."""
    ours: dict[str, Cell] = {
        "summaries": regime.summaries,
        "entries": regime.entries,
        "unsupported.open_todos": _named(regime, "open todos"),
        "unsupported.pending_asks": _named(regime, "pending user asks"),
        "unsupported.reasoning": regime.sections.get("reasoning", Both()).score.value,
        "unsupported.reasoning.first": regime.stages["1"][2].score.value if "1" in regime.stages else None,
        "persistence.1": regime.persistence.get(("reasoning", "score", True, 1), Share()).value,
        "persistence.3": regime.persistence.get(("reasoning", "score", True, 3), Share()).value,
        "exact": regime.exact.get("all", Share()).value,
        "thresholds": _move([regime.below.get(("all", threshold), Share()) for threshold in THRESHOLDS]),
        "forward.entries": regime.forward_entries.value,
        "forward.pruned": regime.forward_pruned.value,
    }
    rows: tuple[tuple[Cell, ...], ...] = tuple((one.text, one.value, ours[one.name]) for one in COMPOSITION)
    note = "Published: OpenClaw's summaries of other agents, judged by Jev. Ours: watched runs of this report."
    return Table(
        name="composition_published", title="The paper's figures beside ours", columns=("figure", "published", "here"), rows=rows, note=note
    )


def _named(regime: Composition, title: str) -> float | None:
    """The unsupported share of sections of that title, wherever they stand."""
    share = Share()
    for name, both in regime.sections.items():
        if name.startswith("section=") and name.lower().endswith(title):
            share.n += both.score.n
            share.of += both.score.of
    return share.value
