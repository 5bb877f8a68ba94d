"""`python -m tests.benchmarks`: measure, print a table, write `var/bench.json`; with `--readme`, put the last table into the README."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence

from tests.benchmarks import assurance, core, figures, judging, messages, monitoring, pipeline, retrieval, searching
from tests.benchmarks.figures import Figure
from tests.benchmarks.progress import say
from tests.benchmarks.stack import KAFKA, MESH
from tests.harness.data import REPOSITORY

Measure = Callable[[bool], Iterator[Figure]]


def _pipeline(kind: str) -> Measure:
    def measure(quick: bool) -> Iterator[Figure]:
        if kind == KAFKA and (missing := pipeline.kafka_is_missing()):
            say(f"{kind}: left out: {missing}")
            return
        yield from pipeline.measure(kind, pipeline.QUICK if quick else pipeline.FULL)

    return measure


#: In the order in which they run: what needs a quiet machine first.
SUITES: dict[str, Measure] = {
    "core": lambda quick: core.measure(quick=quick),
    "judging": lambda quick: judging.measure(quick=quick),
    "retrieval": lambda quick: retrieval.measure(quick=quick),
    "search": lambda quick: searching.measure(quick=quick),
    "assurance": lambda quick: assurance.measure(quick=quick),
    "monitor": lambda quick: monitoring.measure(quick=quick),
    "messaging": lambda quick: messages.measure(quick=quick),
    "mesh": _pipeline(MESH),
    "kafka": _pipeline(KAFKA),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit status is 1 where `--gate` is given and a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=list(SUITES), metavar="NAME", help=f"one of {', '.join(SUITES)}; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the load; the figures are written all the same")
    parser.add_argument("--gate", action="store_true", help="exit with 1 where a goal is missed")
    parser.add_argument("--readme", action="store_true", help="measure nothing; write the figures of the last run into README.md")
    options = parser.parse_args(arguments)
    if options.readme:
        return _readme()
    found: list[Figure] = []
    for name in options.only or SUITES:
        found += SUITES[name](options.quick)
    kept = figures.merged(figures.load(), found) if options.only else found
    figures.write(kept)
    print(figures.table(found))
    missed = [f.name for f in found if f.met is False]
    print(f"\n{figures.machine()}; written to {figures.RESULTS.relative_to(REPOSITORY)}")
    if missed:
        print(f"{len(missed)} of {len([f for f in found if f.goal])} goals missed: {'; '.join(missed)}")
    return 1 if options.gate and missed else 0


def _readme() -> int:
    found = figures.load()
    if not found:
        print("there are no figures yet; run `make bench` first", file=sys.stderr)
        return 1
    figures.into_readme(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
