"""What a recipe is worth on runs, and on domains, that it has not seen; as tables."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from winnow.contracts.evaluation import Cell, Table
from winnow.judging.evaluation.metrics import Bools, Floats, Ranking, at_tau, calibration_error
from winnow.judging.model import SourceModel
from winnow.judging.training import recipe
from winnow.judging.training.rows import SOURCE_CHANGES, VALUE_CHANGES, Groups, Rows

#: Threshold that decisions are told at.
TAU: Final = 0.5
#: Thresholds of the trade between natural recall and what is kept without a source.
_TAUS: Final = (0.4, 0.5, 0.6, 0.7, 0.8)
#: Shares of the runs that the learning curve is drawn at, and draws at each.
_SHARES: Final = (0.25, 0.5, 0.75)
_DRAWS: Final = 3


def auroc(rows: Rows, p: Floats, mask: Bools) -> float:
    """Area under the ROC curve of the rows of a mask."""
    return float(Ranking.of(rows.source[mask], p[mask]).auroc()[0])


def figures(rows: Rows, by: dict[str, Floats]) -> Table:
    """Ranking, decisions and calibration on natural entries, for probabilities by way of folding."""
    natural = rows.natural
    reasoning = natural & rows.reasoning
    parts = {
        "all": natural,
        "reasoning": reasoning,
        "first boundary": natural & (rows.index == 1),
        "later boundaries": natural & (rows.index > 1),
        **{f"section {name}": natural & (rows.section == name) for name in sorted(set(rows.section[natural].tolist()))},
        **{f"domain {name}": natural & (rows.domain == name) for name in sorted(set(rows.domain[natural].tolist()))},
    }
    rows_of: list[tuple[str, list[float]]] = [
        (f"AUROC, {name}", [auroc(rows, p, mask) for p in by.values()]) for name, mask in parts.items()
    ]
    for recall in (recipe.PUBLISHED_RECALL, 0.9):
        rankings = [Ranking.of(rows.source[reasoning], p[reasoning]) for p in by.values()]
        rows_of.append((f"precision at recall {recall}, reasoning", [float(ranking.precision_at(recall)[0]) for ranking in rankings]))
    for name, mask in (("all", natural), ("reasoning", reasoning)):
        decided = [at_tau(rows.source[mask], p[mask] >= TAU) for p in by.values()]
        rows_of.append((f"precision at {TAU}, {name}", [float(one.precision[0]) for one in decided]))
        rows_of.append((f"recall at {TAU}, {name}", [float(one.recall[0]) for one in decided]))
    errors = [float(calibration_error(rows.source[natural], p[natural])[0]) for p in by.values()]
    rows_of.append(("expected calibration error", errors))
    cells: tuple[tuple[Cell, ...], ...] = tuple((name, *(_cell(value, 4) for value in values)) for name, values in rows_of)
    return Table(name="figures", title="On what it has not seen", columns=("figure", *by), rows=cells)


def changes(rows: Rows, by: dict[str, Floats]) -> Table:
    """The trade of natural recall against what is kept without a source, by threshold; the first and later boundaries apart.

    Where `rows` have findings, also by the capped score, which is what is kept by.
    """
    everything = np.ones(len(rows.run), bool)
    parts = [("", everything, _TAUS), (", first boundaries", rows.index == 1, (TAU,)), (", later boundaries", rows.index > 1, (TAU,))]
    bare = [*parts[:1], (", nothing left of it", rows.bare, (TAU,))]
    kept = {name: (p, parts) for name, p in by.items()}
    if rows.capped.any():
        kept |= {f"{name}, capped": (rows.score(p), bare) for name, p in by.items()}
    cells: list[tuple[Cell, ...]] = []
    for name, (p, of_name) in kept.items():
        for part, mask, taus in of_name:
            sourced = rows.natural & (rows.source == 1.0) & mask
            of_kind = [(rows.change == kind) & rows.counted & mask for kind in SOURCE_CHANGES]
            cells += [(name + part, tau, *(_cell(_share(p[chosen] >= tau), 3) for chosen in (sourced, *of_kind))) for tau in taus]
    names = tuple(kind.value.replace("_", " ") for kind in SOURCE_CHANGES)
    return Table(
        name="changes", title="Kept although the source was taken away", columns=("folds", "tau", "natural recall", *names),
        rows=tuple(cells),
    )  # fmt: skip


def wrong_values(rows: Rows, by: dict[str, Floats]) -> Table:
    """What is kept at `TAU` although a value is wrong: by `p` alone, and by the capped score, over all and by domain."""
    domains = sorted(set(rows.domain.tolist()))
    parts = [("", np.ones(len(rows.run), bool)), *((f", {name}", rows.domain == name) for name in domains)]
    cells: list[tuple[Cell, ...]] = []
    for name, p in by.items():
        for part, mask in parts:
            of_kind = [(rows.change == kind) & mask for kind in VALUE_CHANGES]
            shares = [_share(kept[chosen] >= TAU) for chosen in of_kind for kept in (p, rows.score(p))]
            cells.append((name + part, *(int(chosen.sum()) for chosen in of_kind), *(_cell(share, 3) for share in shares)))
    names = [kind.value.replace("_", " ") for kind in VALUE_CHANGES]
    columns = ("folds", *(f"{name}, entries" for name in names), *(f"{name}, {how}" for name in names for how in ("by p", "capped")))
    return Table(name="wrong_values", title="Kept although a value is wrong", columns=columns, rows=tuple(cells))


def _share(kept: Bools) -> float:
    """Share of the kept; NaN where there are none."""
    return float(kept.mean()) if len(kept) else float("nan")


def _cell(value: float, decimals: int) -> float | None:
    """A figure as a table has it: null where it is not defined."""
    return None if np.isnan(value) else round(value, decimals)


def learning_curve(rows: Rows, order: Callable[[list[str], int], list[str]], told: Callable[[int], None] = lambda _: None) -> Table:
    """AUROC on unseen runs by the number of runs that are trained on.

    `order` gives the runs in an order of its own for each draw; each run is judged by a model of the first so many others.
    """
    runs = sorted(set(rows.run.tolist()))
    cells: list[tuple[Cell, ...]] = []
    for share in (*_SHARES, 1.0):
        size = max(2, round(share * (len(runs) - 1)))
        found: list[tuple[float, float]] = []
        for draw in range(_DRAWS if share < 1.0 else 1):
            p = np.full(len(rows.run), np.nan)
            for run in runs:
                chosen = [other for other in order(runs, draw) if other != run][:size]
                held = rows.run == run
                p[held] = _sigmoid(recipe.heads(rows, np.isin(rows.run, chosen)).either(rows)[held])
            found.append((auroc(rows, p, rows.natural), auroc(rows, p, rows.natural & rows.reasoning)))
            told(len(found))
        everything, reasoning = (_cell(float(np.mean([one[at] for one in found])), 4) for at in (0, 1))
        cells.append((size, everything, reasoning))
    return Table(
        name="learning_curve", title="More runs", columns=("runs trained on", "AUROC all", "AUROC reasoning"), rows=tuple(cells),
        note=f"mean of {_DRAWS} draws below all runs; without calibration, which does not change a run's own order",
    )  # fmt: skip


def weights(model: SourceModel) -> Table:
    """The coefficients."""
    cells = [(head, name, weight) for head, of in (("env", model.env), ("prev", model.prev)) for name, weight in of.weights.items()]
    cells += [("env", "intercept", model.env.intercept), ("prev", "intercept", model.prev.intercept)]
    return Table(name="weights", title="Coefficients", columns=("head", "feature", "weight"), rows=tuple(cells))


def cross_validated(rows: Rows, told: Callable[[int], None] = lambda _: None) -> dict[str, Floats]:
    """Probabilities by leave-one-run-out and, where there are at least three domains, by leave-one-domain-out."""
    ways: Sequence[tuple[str, Groups]] = (("run", rows.run), ("domain", rows.domain))
    return {
        f"by {name}": recipe.cross_predicted(rows, groups, told)
        for name, groups in ways
        if name == "run" or len(set(groups.tolist())) > 2  # noqa: PLR2004  with two, one is all there is to learn from
    }


def _sigmoid(z: Floats) -> Floats:
    """Logistic function."""
    found: Floats = 1.0 / (1.0 + np.exp(-np.clip(z, -40.0, 40.0)))
    return found
