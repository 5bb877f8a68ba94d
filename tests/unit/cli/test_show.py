"""What one boundary looks like in one line."""

from uuid import UUID

import pytest

from winnow.cli.show import headline
from winnow.client.api import BoundaryView
from winnow.contracts.events import Committed, sha256

AT = "2026-11-30T12:00:00Z"


def view(mode: str, *, pruned: int, decided: tuple[str, ...]) -> BoundaryView:
    named = {"fleet": "default", "run": "r", "boundary_id": str(UUID(int=1)), "agent": "agent", "index": 1, "mode": mode}
    decisions = [
        {
            "n": n, "section": "Decisions", "section_class": "mixed", "span": [n, n + 1], "decision": decision, "reason": "score",
            "verdict": "unsourced", "provenance": "nowhere", "root_source": "none", "explanation": "x",
        }
        for n, decision in enumerate(decided, 1)
    ]  # fmt: skip
    result = named | {
        "request_sha256": sha256(""), "candidate_sha256": sha256(""), "operating_point": 1, "outcome": "judged", "rules": "winnow",
        "profile": "openclaw", "tau": 0.5, "summary": None, "committed_sha256": None, "committed_at": AT, "pruned": pruned,
        "decisions": decisions,
    }  # fmt: skip
    stored = named | {"candidate_sha256": sha256(""), "status": "committed", "outcome": "judged", "committed_at": AT}
    return BoundaryView.model_validate(stored | {"pruned": pruned, "entries": 3, "result": Committed.model_validate(result)})


@pytest.mark.parametrize(
    ("mode", "pruned", "decided", "said"),
    [
        ("enforce", 2, ("kept", "pruned", "pruned"), "2 of 3 entries pruned"),
        ("annotate", 0, ("kept", "pruned", "pruned"), "0 of 3 entries pruned, 2 would be"),
        ("shadow", 0, (), "0 of 3 entries pruned"),
    ],
)
def test_the_headline_counts_what_was_left_out_and_claims_no_more(mode, pruned, decided, said):
    """In shadow mode verdicts are not told, so the line says nothing of sources; in annotate mode it says what would have been."""
    assert headline(view(mode, pruned=pruned, decided=decided)).plain.endswith(f"  {mode}  {said}")
