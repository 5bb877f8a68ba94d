"""The published counts that ship with the package (origin and licence: `data/NOTICE.md`)."""

import hashlib
import json
from importlib import resources
from typing import Any, Final

from winnow.contracts.evaluation import DataFingerprint

LICENCE: Final = "Apache-2.0 (dshakes/distil)"
#: Files and the units in them.
FILES: Final = {
    "leave_one_domain_out.json": (500, "trajectory"),
    "seed_counts.json": (500, "trajectory"),
    "e5_extract.json": (200, "turn"),
    "swebench-outcome-300_grades.jsonl": (300, "task"),
    "provider-compaction_openai-3000_cases.jsonl": (40, "compaction event"),
    "shadow-live-2026-09-15.json": (398, "request"),
    "retention-2026-10-04.json": (1_094, "fact"),
}


def document(name: str) -> Any:  # noqa: ANN401  whatever the published file holds
    """A JSON file of the package's data folder."""
    return json.loads(_bytes(name))


def lines(name: str) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file of the package's data folder."""
    return [json.loads(line) for line in _bytes(name).splitlines() if line.strip()]


def fingerprint(name: str) -> DataFingerprint:
    """Which file that was."""
    n, unit = FILES[name]
    return DataFingerprint(source=name, sha256=hashlib.sha256(_bytes(name)).hexdigest(), n=n, unit=unit, licence=LICENCE)


def _bytes(name: str) -> bytes:
    """The file as it ships."""
    return resources.files("winnow.assurance.reproduction.data").joinpath(name).read_bytes()
