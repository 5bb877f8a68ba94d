"""`python -m tests.benchmarks.assure`: simulate, compare, and write `docs/assurance-tables.md` with its plots."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from tests.benchmarks.assure import document
from tests.benchmarks.assure.checks import Check
from tests.benchmarks.assure.kinds import kinds
from tests.benchmarks.assure.sections import SECTIONS as MOST_SECTIONS
from tests.benchmarks.progress import say
from tests.harness.data import REPOSITORY

SECTIONS = {**MOST_SECTIONS, "kinds": kinds}
RESULTS = REPOSITORY / "var" / "assure.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; the exit status is 1 where a figure is outside its tolerance."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.assure", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(SECTIONS), metavar="NAME", help=f"one of {', '.join(SECTIONS)}")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the runs; below 1 the documents are not written")
    options = parser.parse_args(arguments)
    found: dict[str, list[Check]] = {}
    for name in options.only or SECTIONS:
        start = time.process_time()
        found[name] = list(SECTIONS[name](options.scale))
        bad = [c for c in found[name] if not c.ok]
        seconds = time.process_time() - start
        say(f"{name}: {len(found[name])} figures in {seconds:.0f} s of processor time, {len(bad)} outside their tolerance")
        for check in bad:
            say(f"  {check.table} | {check.row} | {check.column}: {check.value:.4g}, specified {check.expected}, at most {check.most}")
        if options.scale >= 1:
            _keep(found)  # at once: whoever stops it after eight minutes goes on with `--only`
    if options.scale >= 1:
        kept = _load()
        if set(kept) == set(SECTIONS):
            document.write(kept)
        else:
            say(f"no documents yet: {', '.join(sorted(set(SECTIONS) - set(kept)))} not run")
    return 1 if any(not c.ok for checks in found.values() for c in checks) else 0


def _keep(found: dict[str, list[Check]]) -> None:
    """Put what was found beside what was found earlier."""
    kept = {**_load(), **found}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({name: [asdict(c) for c in checks] for name, checks in kept.items()}, indent=0))


def _load() -> dict[str, list[Check]]:
    if not RESULTS.exists():
        return {}
    return {name: [Check(**c) for c in checks] for name, checks in json.loads(RESULTS.read_text()).items()}


if __name__ == "__main__":
    sys.exit(main())
