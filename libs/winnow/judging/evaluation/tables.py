"""The tables of a judge's evaluation, as the record holds them."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from winnow.contracts.evaluation import Cell, Metric, Table
from winnow.contracts.vocabulary import FindingKind, Verdict
from winnow.judging.evaluation import metrics
from winnow.judging.evaluation.figures import MEANINGS
from winnow.judging.evaluation.metrics import Bools, Floats, Ranking
from winnow.judging.evaluation.probes import Again, Stressing
from winnow.judging.evaluation.samples import Samples, slices

#: Bins of the histogram of scores.
HISTOGRAM_BINS: Final = 20
#: Thresholds of the sweep.
SWEEP: Final = tuple(round(0.05 * step, 2) for step in range(1, 20))
#: Points of a curve; more than a plot shows.
CURVE_POINTS: Final = 200
#: Errors of each kind that are shown with their evidence.
ERRORS: Final = 15
#: Characters of an entry or passage that a table shows.
TEXT_CHARS: Final = 400
#: Bands of the first score by which repetitions are told.
BANDS: Final = ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0))


def _cell(value: float) -> float | None:
    """A number as a cell: six decimals, None where it is not defined."""
    return round(float(value), 6) if np.isfinite(value) else None


def of_slices(found: Sequence[Metric]) -> Table:
    """Every figure of every slice, one row a slice."""
    names = [name for name in MEANINGS if any(metric.name == name for metric in found)]
    by_slice: dict[str, dict[str, Metric]] = {}
    for metric in found:
        if metric.name in names:
            by_slice.setdefault(metric.slice, {})[metric.name] = metric
    columns: list[str] = ["slice", "n", "sourced"]
    for name in names:
        columns += [name, f"{name} lo", f"{name} hi"] if name in {"auroc", "ap_unsourced"} else [name]
    rows: list[tuple[Cell, ...]] = []
    for name, row in by_slice.items():
        cells: list[Cell] = [name, row["pruned"].n, row["pruned"].positives]
        for column in names:
            one = row.get(column)
            cells.append(None if one is None or one.value is None else _cell(one.value))
            if column in {"auroc", "ap_unsourced"}:
                interval = None if one is None else one.interval
                cells += [None if interval is None else interval.lo, None if interval is None else interval.hi]
        rows.append(tuple(cells))
    note = "; ".join(f"{name}: {MEANINGS[name]}" for name in names)
    return Table(name="slices", title="Figures by slice", columns=tuple(columns), rows=tuple(rows), note=note)


def of_sections(samples: Samples, tau: float) -> Table:
    """Section by section: what is truly unsupported, what is pruned, and which mistakes that makes."""
    rows: list[tuple[Cell, ...]] = []
    kept = samples.kept(tau)
    for name, mask in slices(samples).items():
        if not (name == "all" or name.startswith("section=")) or not mask.any():
            continue
        here = metrics.at_tau(samples.source[mask], kept[mask])
        only_user = mask & (samples.user == 1) & (samples.source == 0)
        rows.append(
            (
                name.removeprefix("section="),
                int(mask.sum()),
                bool(samples.forward[mask].all()),
                _cell(1.0 - samples.source[mask].mean()),
                *(_cell(value[0]) for value in (here.pruned, here.false_prune, here.false_keep)),
                int(only_user.sum()),
                int((only_user & (kept | samples.user_kept)).sum()),
            )
        )
    columns = ("section", "n", "forward-looking", "unsupported", "pruned", "false prune", "false keep", "only user", "of these kept")
    note = (
        f"tau {tau:g}. unsupported: true share without a source; false prune: of the sourced; false keep: of the unsourced; only user: "
        "entries whose only record is a user turn, kept by score or for that turn."
    )
    return Table(name="sections", title="Decisions by section", columns=columns, rows=tuple(rows), note=note)


def of_verdicts(samples: Samples, tau: float) -> Table:
    """What the judge says of entries beside their labels: how often each verdict is given, and to how many sourced entries."""
    kept = samples.kept(tau)
    said = np.array([Verdict(verdict).value for verdict in samples.verdict], object)
    rows: list[tuple[Cell, ...]] = []
    for verdict in Verdict:
        inside = said == verdict.value
        if inside.any():
            sourced, held = samples.source[inside].mean(), kept[inside].mean()
            rows.append((verdict.value, int(inside.sum()), _cell(sourced), _cell(held), int(np.nansum(samples.refuted[inside]))))
    return Table(
        name="verdicts",
        title="Verdicts",
        columns=("verdict", "n", "sourced", "kept", "labelled refuted"),
        rows=tuple(rows),
        note=f"tau {tau:g}. A contradicted entry may well have a source: source and refutation are two questions.",
    )


def of_findings(samples: Samples) -> Table:
    """What speaks against entries, by kind: how often it is found, and how many of these entries have a source or are labelled so."""
    rows: list[tuple[Cell, ...]] = []
    for kind in FindingKind:
        inside = np.array([kind in flags for flags in samples.flags], bool)
        if inside.any():
            labelled = {FindingKind.STALE: samples.done, FindingKind.CONTRADICTED: samples.refuted}.get(kind)
            agreed = None if labelled is None else int(np.nansum(labelled[inside]))
            rows.append((kind.value, int(inside.sum()), _cell(inside.mean()), _cell(samples.source[inside].mean()), agreed))
    return Table(
        name="findings",
        title="Findings against entries",
        columns=("finding", "n", "share of entries", "sourced", "labelled so"),
        rows=tuple(rows),
        note="labelled so: annotators called the entry refuted (contradicted) or done (stale).",
    )


def of_calibration(samples: Samples) -> Table:
    """Mean score and sourced share in ten equal bins, all entries and reasoning entries."""
    rows: list[tuple[Cell, ...]] = []
    for name, mask in (("all", samples.scored), ("reasoning", samples.scored & samples.reasoning)):
        bins = metrics.calibration(samples.source[mask], samples.score[mask])
        rows += [(name, one.lo, one.hi, one.n, _cell(one.mean_score), _cell(one.sourced)) for one in bins]
    return Table(
        name="calibration",
        title="Calibration",
        columns=("slice", "from", "to", "n", "mean score", "sourced"),
        rows=tuple(rows),
        note="A calibrated judge's mean score equals the sourced share in every bin.",
    )


def of_histogram(samples: Samples) -> Table:
    """How many entries have which score, forward-looking sections apart from the others."""
    bins = np.minimum((np.nan_to_num(samples.score) * HISTOGRAM_BINS).astype(int), HISTOGRAM_BINS - 1)
    rows: list[tuple[Cell, ...]] = []
    for at in range(HISTOGRAM_BINS):
        inside = (bins == at) & samples.scored
        cells = [
            int((inside & (samples.forward == forward) & (samples.source == source)).sum())
            for forward in (True, False)
            for source in (1, 0)
        ]
        rows.append((at / HISTOGRAM_BINS, (at + 1) / HISTOGRAM_BINS, *cells))
    return Table(
        name="histogram",
        title="Scores, forward-looking sections marked",
        columns=("from", "to", "forward, sourced", "forward, unsourced", "other, sourced", "other, unsourced"),
        rows=tuple(rows),
        note="Forward-looking: sections of plans and asks, by the summary format's profile.",
    )


def of_sweep(samples: Samples) -> Table:
    """What each threshold would mean."""
    rows: list[tuple[Cell, ...]] = []
    for tau in SWEEP:
        kept = samples.kept(tau)
        row: list[Cell] = [tau]
        for mask in (np.ones(len(samples), bool), samples.reasoning):
            here = metrics.at_tau(samples.source[mask], kept[mask])
            row += [_cell(value[0]) for value in (here.pruned, here.precision, here.recall, here.false_keep)]
        pruned = int((~kept).sum())
        row.append(_cell((~kept & samples.forward).sum() / pruned) if pruned else None)
        rows.append(tuple(row))
    names = ("pruned", "precision", "recall", "false keep")
    columns = ("tau", *names, *(f"reasoning {name}" for name in names), "forward share of pruned")
    moved = [row[1] for row in rows if 0.3 <= float(str(row[0])) <= 0.7 and isinstance(row[1], float)]  # noqa: PLR2004  the published range
    note = f"From tau 0.3 to 0.7 the pruned share moves by {100 * (max(moved) - min(moved)):.1f} points." if moved else ""
    return Table(name="sweep", title="Sweep of the threshold", columns=columns, rows=tuple(rows), note=note)


def of_curves(samples: Samples) -> Table:
    """Points of the ROC and precision-recall curves, all and reasoning entries."""
    rows: list[tuple[Cell, ...]] = []
    for name, mask in (("all", samples.scored), ("reasoning", samples.scored & samples.reasoning)):
        label, score = samples.source[mask], samples.score[mask]
        ranking = Ranking.of(label, score)
        if not len(label) or label.min() == label.max():
            continue
        up, down = ranking.label.cumsum()[ranking.ends], (1.0 - ranking.label).cumsum()[ranking.ends]
        at = np.unique(np.linspace(0, len(up) - 1, min(CURVE_POINTS, len(up))).astype(int))
        for place in at:
            recall, fall, right = up[place] / up[-1], down[place] / down[-1], up[place] / (up[place] + down[place])
            rows.append((name, *(_cell(value) for value in (-np.sort(-score)[ranking.ends[place]], fall, recall, right))))
    return Table(
        name="curves",
        title="ROC and precision-recall curves",
        columns=("slice", "score", "false positive rate", "recall", "precision"),
        rows=tuple(rows),
    )


def of_stress(found: Sequence[Stressing], tau: float) -> Table:
    """Changed boundaries: how many entries are still kept though they should not be."""
    rows = tuple(
        (
            one.kind.value,
            one.truth.value,
            one.n,
            *(_cell(count / one.n) if one.n else None for count in (one.kept, one.kept_by_p, one.before)),
        )
        for one in found
    )
    note = (
        f"tau {tau:g}. Certain truth after the change: no_source (p must fall) or value_wrong (the capped score must fall). kept: score >= "
        "tau after it; kept by p: before caps; kept unchanged: the same entries as they were written."
    )
    columns = ("change", "truth", "n", "kept", "kept by p", "kept unchanged")
    return Table(name="stress", title="Stress", columns=columns, rows=rows, note=note)


def of_repetition(again: Again, tau: float) -> Table:
    """Answers that change when the identical request is sent again, by band of the first score."""
    changed = again.changed(tau)
    first = again.scores[0] if again.scores.size else np.empty(0)
    rows: list[tuple[Cell, ...]] = []
    for lo, hi in BANDS:
        inside = (first >= lo) & ((first < hi) | (hi == 1.0))
        rows.append((f"{lo:g} to {hi:g}", int(inside.sum()), _cell(changed[inside].mean()) if inside.any() else None))
    rows.append(("all", len(first), _cell(changed.mean()) if len(first) else None))
    note = (
        f"{len(again.scores)} askings ({again.what}); changed: the answer at tau {tau:g} is not always the same. "
        f"Largest move of a score: {again.moved():g}."
    )
    return Table(name="repetition", title="Repetition", columns=("first score", "n", "changed"), rows=tuple(rows), note=note)


def of_errors(samples: Samples, tau: float, most: int = ERRORS) -> Table:
    """The worst errors, each with what the judge said and the evidence it had."""
    kept = samples.kept(tau)
    score = np.where(samples.scored, samples.score, 1.0)
    false_keep = np.flatnonzero((samples.source == 0) & kept)
    false_prune = np.flatnonzero((samples.source == 1) & ~kept)
    chosen = [*_first(false_keep, -score, most), *_first(false_prune, score, most)]
    note = "Unsourced entries kept, the surest first; then sourced entries pruned, the surest first. Texts are cut."
    return _shown("errors", "Worst errors", note, samples, chosen, kept)


def _first(rows: np.ndarray, key: Floats, most: int) -> list[int]:
    """The first rows by a key, in a stable order."""
    return [int(at) for at in rows[np.argsort(key[rows], kind="stable")][:most]]


def _shown(name: str, title: str, note: str, samples: Samples, chosen: Sequence[int], kept: Bools) -> Table:
    """Entries with their texts."""
    rows = tuple(
        (
            samples.boundary[at],
            int(samples.n[at]),
            samples.section[at],
            "sourced" if samples.source[at] else "unsourced",
            "kept" if kept[at] else "pruned",
            _cell(samples.score[at]),
            Verdict(samples.verdict[at]).value,
            _cut(samples.text[at]),
            _cut(samples.explanation[at]),
            _cut(samples.evidence[at]),
        )
        for at in chosen
    )
    columns = ("boundary", "n", "section", "label", "decision", "score", "verdict", "entry", "explanation", "evidence")
    return Table(name=name, title=title, columns=columns, rows=rows, note=note)


def _cut(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text[: 4 * TEXT_CHARS].split())
    return line if len(line) <= TEXT_CHARS else line[: TEXT_CHARS - 1] + "…"


def of_disagreement(mine: Samples, other: Samples, tau: float, other_tau: float) -> tuple[Table, Table]:
    """Where two judges decide differently on the same entries: counts by label, and the entries they are furthest apart on."""
    kept, theirs = mine.kept(tau), other.kept(other_tau)
    rows: list[tuple[Cell, ...]] = []
    for name, mask in (("all", np.ones(len(mine), bool)), ("reasoning", mine.reasoning)):
        for label, source in (("sourced", 1), ("unsourced", 0)):
            inside = mask & (mine.source == source)
            cells = [
                int((inside & (kept == a) & (theirs == b)).sum()) for a, b in ((True, True), (True, False), (False, True), (False, False))
            ]
            rows.append((name, label, int(inside.sum()), *cells))
    columns = ("slice", "label", "n", "both keep", "only this keeps", "only the other keeps", "both prune")
    counts = Table(name="disagreement", title="Decisions of both judges", columns=columns, rows=tuple(rows))
    apart = np.abs(np.nan_to_num(mine.score, nan=1.0) - np.nan_to_num(other.score, nan=1.0))
    chosen = _first(np.flatnonzero(kept != theirs), -apart, ERRORS)
    shown = _shown("disagreements", "Entries on which the judges differ most", "Score and verdict are this judge's.", mine, chosen, kept)
    said = tuple((*row, _cell(other.score[at])) for row, at in zip(shown.rows, chosen, strict=True))
    return counts, Table(name=shown.name, title=shown.title, columns=(*shown.columns, "other score"), rows=said, note=shown.note)
