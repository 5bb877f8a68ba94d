"""Candidates of realistic size: real boundaries, each made unique, in runs whose previous summary is the candidate before."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from tests.harness.data import SHARED_DATA
from winnow.contracts import ids
from winnow.contracts.events import Candidate
from winnow.contracts.topics import CANDIDATE, COMMITTED
from winnow.contracts.vocabulary import Mode
from winnow.demo import data

#: A recorded boundary: run, boundary, task, history, retained, candidate_summary.
Row = Mapping[str, Any]

#: Runtime whose format the shipped boundaries are written in.
HOST = "openclaw"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A candidate ready to be sent."""

    event: Candidate
    body: bytes

    @property
    def key(self) -> bytes:
        """Record key."""
        return self.event.key.encode()

    @property
    def identity(self) -> str:
        """Fleet and boundary id."""
        return f"{self.event.fleet}/{self.event.boundary_id}"

    @property
    def committed_id(self) -> str:
        """`ce_id` of the committed event that answers it: a listener need not read the body."""
        return str(ids.event_id(self.event.fleet, self.event.boundary_id, COMMITTED.event_type))

    @property
    def candidate_id(self) -> str:
        """`ce_id` of the candidate itself."""
        return str(ids.event_id(self.event.fleet, self.event.boundary_id, CANDIDATE.event_type))

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        """CloudEvents headers as a plain runtime writes them."""
        said = {
            "ce_specversion": "1.0",
            "ce_id": self.candidate_id,
            "ce_source": "benchmark",
            "ce_type": CANDIDATE.event_type,
            "ce_subject": self.event.key,
            "content-type": "application/json",
        }
        return [(name, value.encode()) for name, value in said.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Factory:
    """Makes runs out of recorded ones. The same seed and number make the same bytes."""

    #: Recorded runs: boundaries in order.
    recorded: tuple[tuple[Row, ...], ...]
    fleet: str = "bench"
    seed: int = 0
    mode: Mode = Mode.ENFORCE

    @classmethod
    def load(cls, *, fleet: str = "bench", seed: int = 0, mode: Mode = Mode.ENFORCE) -> Self:
        """Read the recorded runs."""
        runs: dict[str, list[Row]] = {}
        for row in recorded():
            runs.setdefault(row["run"], []).append(row)
        ordered = tuple(tuple(sorted(run, key=lambda r: int(r["boundary"]))) for _, run in sorted(runs.items()))
        return cls(recorded=ordered, fleet=fleet, seed=seed, mode=mode)

    def runs(self, boundaries: int, *, length: int | None = None) -> Iterator[list[Sample]]:
        """Yield runs until they have `boundaries` boundaries in all; `length` chains recorded ones to runs of so many."""
        made = 0
        number = 0
        while made < boundaries:
            run = self.run(number, length=length)[: boundaries - made]
            made += len(run)
            number += 1
            yield run

    def run(self, number: int, *, length: int | None = None) -> list[Sample]:
        """Make run `number`. M is always the candidate before, as a runtime sends it that carried on with its own text."""
        name = f"run-{self.seed}-{number:05d}"
        rows = self._rows(number, length)
        samples: list[Sample] = []
        previous: str | None = None
        for index, row in enumerate(rows, 1):
            event = self._candidate(row, name, index, previous)
            samples.append(Sample(event=event, body=event.model_dump_json(exclude_defaults=True).encode()))
            previous = event.candidate
        return samples

    def _rows(self, number: int, length: int | None) -> Sequence[Row]:
        """Recorded boundaries for a run: one recorded run, or as many after one another as it takes."""
        if length is None:
            return self.recorded[number % len(self.recorded)]
        rows: list[Row] = []
        step = number
        while len(rows) < length:
            rows.extend(self.recorded[step % len(self.recorded)])
            step += 1
        return rows[:length]

    def _candidate(self, row: Row, run: str, index: int, previous: str | None) -> Candidate:
        """Make one boundary whose task, messages and summary nobody else has: stored contents are shared within a fleet."""
        mark = hashlib.sha256(f"{self.seed}/{run}/{index}".encode()).hexdigest()[:12]
        history = [dict(m) for m in row["history"]]
        history[-1]["text"] = f"{history[-1]['text']}\nrequest {mark}"
        said = {
            "fleet": self.fleet,
            "run": run,
            "index": index,
            "host": HOST,
            "mode": self.mode,
            "task": f"{row['task']}\n(request {mark})",
            "history": history,
            "retained": row["retained"],
            "previous_summary": previous,
            "candidate": marked(row["candidate_summary"], mark),
        }
        return Candidate.model_validate(said)


def marked(summary: str, mark: str) -> str:
    """Return `summary` with `mark` at the end of its first bullet, so that no other summary has these bytes."""
    lines = summary.split("\n")
    at = next((i for i, line in enumerate(lines) if line.lstrip().startswith("- ")), len(lines) - 1)
    lines[at] += f" (request {mark})"
    return "\n".join(lines)


def recorded() -> list[Row]:
    """Return the recorded boundaries: those beside the checkout, else those that ship with the package."""
    beside = SHARED_DATA / "sourcebench" / "dev.jsonl"
    if not beside.exists():
        return shipped()
    return [json.loads(line) for line in beside.read_text().splitlines() if line.strip()]


def shipped() -> list[Row]:
    """Return the boundaries that ship with the package for its demonstration."""
    run = data.load()
    return [
        {
            "run": run.run,
            "boundary": boundary.index,
            "task": run.task,
            "history": [message.model_dump(exclude_defaults=True) for message in boundary.history],
            "retained": [message.model_dump(exclude_defaults=True) for message in boundary.retained],
            "candidate_summary": boundary.candidate,
        }
        for boundary in run.boundaries
    ]
