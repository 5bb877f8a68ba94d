"""`winnow judge-train`: fit the local judge on labelled boundaries."""

import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli.terminal import Terminal
from winnow.contracts.errors import Permanent
from winnow.contracts.events import sha256

if TYPE_CHECKING:
    from winnow.cli.labelled_lines import Data

#: Fewer runs than this leave nothing to calibrate on: each is judged by a model of the others.
_RUNS = 3
#: Draws of wrong values that a report is made over: one draw moves the shares by two points.
_DRAWS = 3


class TooFew(Permanent):
    """The data cannot be trained on."""


def judge_train(
    data: Annotated[str, typer.Argument(metavar="DATA.jsonl", help="Labelled boundaries, one a line; - is standard input.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where the model file goes.")],
    report: Annotated[bool, typer.Option("--report", help="Also measure the recipe on runs and domains that it has not seen.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the changes that make entries without a source.")] = 0,
) -> None:
    """Fit the local judge and write its model file.

    A line is one of `winnow judge` with `entries`: n, text, env and prev, and where the data has them run, domain, user. The same data and
    seed give the same file. The file that ships with Winnow was made so.

    Example:  winnow judge-train dev.jsonl --out model.json --report
    """
    from winnow.cli.evaluating import Progress
    from winnow.cli.labelled_lines import read_data
    from winnow.cli.records import read_bytes, rich
    from winnow.judging.training import recipe
    from winnow.judging.training import report as measured
    from winnow.judging.training.files import model_file
    from winnow.judging.training.rows import SOURCE_CHANGES, collect

    terminal = Terminal()
    progress = Progress(terminal)
    content = read_bytes(data)
    found = read_data(content)
    _check(found)
    with progress.of("boundaries examined") as told:
        draw = lambda: random.Random(seed)  # noqa: E731, S311  a reproducible draw, nothing secret
        wrong = [partial(random.Random, drawn) for drawn in range(_DRAWS)] if report else []
        rows = collect(found.boundaries, draw, told, findings=report, values=wrong)
    model = recipe.train(rows, sha256(content))
    name = "standard input" if data == "-" else Path(data).name
    text = model_file(model, rows, data_name=name, boundaries=len(found.boundaries), seed=seed)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as exc:
        msg = f"{out}: {exc.strerror or exc}"
        raise Permanent(msg) from None
    taken = sum(change in SOURCE_CHANGES for change in rows.change)
    terminal.note(f"{int(rows.natural.sum())} entries, {taken} without their source; model in {out}")
    if report:
        with progress.of("folds") as told:
            by = measured.cross_validated(rows, told)
        with progress.of("learning curve") as told:
            curve = measured.learning_curve(rows, lambda runs, draw: random.Random(draw).sample(runs, len(runs)), told)  # noqa: S311  as above
        for table in (
            measured.figures(rows, by),
            measured.changes(rows, by),
            measured.wrong_values(rows, by),
            curve,
            measured.weights(model),
        ):
            terminal.show(rich(table))


def _check(data: "Data") -> None:
    """Raise `TooFew` where there is nothing to learn from."""
    runs = {boundary.run for boundary in data.boundaries}
    if len(runs) < _RUNS:
        msg = f"{len(runs)} runs; at least {_RUNS} are needed, because the judge is calibrated on runs that its parts have not seen"
        raise TooFew(msg)
    for boundary in data.boundaries:
        if any(label.env is None or (label.prev is None and boundary.previous) for label in boundary.labels):
            msg = (
                f"{boundary.id}: entries need env and prev apart; source alone does not say whether an output or the previous summary is it"
            )
            raise TooFew(msg)
