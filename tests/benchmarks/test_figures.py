"""What turns measurements into figures."""

import json
from pathlib import Path

import pytest

from tests.benchmarks import boundaries, figures
from tests.benchmarks.boundaries import Factory
from tests.benchmarks.figures import Figure, against
from tests.benchmarks.traffic import percentile
from tests.benchmarks.watch import Watch, least_squares
from winnow.contracts.events import Candidate


@pytest.mark.parametrize(
    ("goal", "met"),
    [("value >= 100", True), ("value >= 101", False), ("ratio <= 2", True), ("ratio <= 1.9", False), (None, None)],
)
def test_goal(goal: str | None, met: bool | None) -> None:
    """A goal is met or not by the value or by the ratio, as it says; without a goal there is nothing to meet."""
    assert against("rate", 100, "1/s", 50, goal=goal).met is met


def test_times_faster() -> None:
    """An inverse ratio says how many times faster than its baseline a figure is."""
    assert against("scores", 2.0, "ms", 50.0, inverse=True).ratio == 25


def test_written_and_read(tmp_path: Path) -> None:
    """The file holds exactly the six fields of each figure, and reads back as it was written."""
    found = [against("a", 1.5, "ms", 3.0, goal="ratio <= 1"), Figure(name="b", value=2.0, unit="MiB")]
    path = tmp_path / "var" / "bench.json"
    figures.write(found, path)
    assert [list(entry) for entry in json.loads(path.read_text())] == [["name", "value", "unit", "baseline", "ratio", "goal"]] * 2
    assert figures.load(path) == found


def test_partial_run_keeps_the_other_figures() -> None:
    """A run of one suite replaces its own figures in their place and leaves the others alone."""
    old = [Figure(name=n, value=1.0, unit="ms") for n in "abc"]
    new = [Figure(name=n, value=2.0, unit="ms") for n in "bd"]
    assert [(f.name, f.value) for f in figures.merged(old, new)] == [("a", 1.0), ("b", 2.0), ("c", 1.0), ("d", 2.0)]


def test_readme(tmp_path: Path) -> None:
    """The table replaces what stands between the markers, twice as well as once, and nothing else."""
    path = tmp_path / "README.md"
    path.write_text(f"before\n{figures.START}\nold\n{figures.END}\nafter\n")
    for _ in range(2):
        figures.into_readme([Figure(name="rate | burst", value=1234.5, unit="1/s")], path)
    text = path.read_text()
    assert text.startswith(f"before\n{figures.START}\n| figure |")
    assert text.endswith(f"{figures.END}\nafter\n")
    assert "old" not in text
    assert text.count("| rate \\| burst | 1,234 | 1/s |") == 1


def test_readme_without_markers(tmp_path: Path) -> None:
    """A README without markers is left as it is, with an error that names them."""
    path = tmp_path / "README.md"
    path.write_text("nothing")
    with pytest.raises(ValueError, match="bench:start"):
        figures.into_readme([], path)
    assert path.read_text() == "nothing"


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_percentile(share: float, value: int) -> None:
    """A percentile is the smallest value that at least its share of all do not exceed."""
    assert percentile(range(1, 101), share) == value


def test_slope_of_the_second_half() -> None:
    """The growth is that of the second half alone, a thousand units."""
    watch = Watch(roles={}, done=lambda: 0)
    watch.samples = [(done, {"services": 100.0 + (done if done < 500 else 500 + 2 * (done - 500) / 1000)}) for done in range(0, 1_001, 50)]
    assert watch.slope("services") == pytest.approx(2.0)
    assert least_squares([(1.0, 5.0)]) == 0.0


def test_candidates_are_unique_and_chained() -> None:
    """Every candidate is valid and has bytes of its own, the same each time, and carries the candidate before as its previous summary."""
    runs = list(Factory.load(seed=7).runs(20, length=4))
    assert [[s.body for s in run] for run in runs] == [[s.body for s in run] for run in Factory.load(seed=7).runs(20, length=4)]
    events = [Candidate.model_validate_json(sample.body) for run in runs for sample in run]
    for part in ("candidate", "task", "boundary_id", "history"):
        assert len({getattr(event, part) for event in events}) == len(events) == 20
    for run in runs:
        assert [s.event.previous_summary for s in run] == [None, *(s.event.candidate for s in run[:-1])]


def test_shipped_boundaries_are_enough() -> None:
    """Without the data beside the checkout the boundaries that ship with the package are taken."""
    factory = Factory(recorded=(tuple(boundaries.shipped()),))
    samples = [sample for run in factory.runs(7) for sample in run]
    assert len({sample.identity for sample in samples}) == 7
