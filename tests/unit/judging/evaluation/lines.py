"""Labelled lines for the tests of evaluations."""

import json
from typing import Any

SUMMARY = """## Decisions

- take HAT136 for $152
- pay with the gift card

## Open TODOs

- [ ] call the airline about ZZ999
"""

LABELS = (
    {"n": 1, "section": "Decisions", "text": "- take HAT136 for $152", "env": 1, "prev": 0, "user": 0, "source": 1},
    {"n": 2, "section": "Decisions", "text": "- pay with the gift card", "env": 0, "prev": 0, "user": 1, "source": 0},
    {"n": 3, "section": "Open TODOs", "text": "- [ ] call the airline about ZZ999", "env": 0, "prev": 0, "user": 0, "source": 0},
)


def line(number: int = 1, **more: Any) -> dict[str, Any]:
    """One labelled boundary."""
    return {
        "id": f"b{number}",
        "run": f"run-{number}",
        "boundary": 1,
        "domain": "airline" if number % 2 else "coding",
        "task": "USER: book a flight",
        "previous_summary": None,
        "history": [
            {"i": 0, "kind": "action", "text": "[tool call] search: {}"},
            {"i": 1, "kind": "environment", "text": f"flight HAT136 costs $152, seat {number}4C free", "tool": "search"},
            {"i": 2, "kind": "user", "text": "pay with the gift card"},
        ],
        "retained": [],
        "candidate_summary": SUMMARY,
        "entries": list(LABELS),
        **more,
    }


def data(*lines: dict[str, Any]) -> bytes:
    """Lines as a file."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in lines)
