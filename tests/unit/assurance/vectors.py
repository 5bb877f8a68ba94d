"""The golden numbers that lie beside the checkout, by section; a test that needs them is skipped where they are absent."""

import json
from functools import cache
from typing import Any

from tests.harness import shared_data


@cache
def _read(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123  a path from the harness, read once
        return json.load(file)


def golden(section: str) -> Any:
    return _read(str(shared_data("assurance_golden.json")))[section]


def published(section: str) -> Any:
    return _read(str(shared_data("distil_outcomes", "test_vectors.json")))[section]
