"""One boundary through the core."""

import pytest

from winnow.compaction import boundary
from winnow.compaction.boundary import examine
from winnow.contracts import limits
from winnow.contracts.errors import TooLarge


def test_too_many_entries_are_refused_before_any_work_is_done_for_them(monkeypatch):
    """A summary above the limit of entries is refused at the count: neither M nor the span is looked at."""
    monkeypatch.setattr(limits, "MAX_ENTRIES", 3)
    monkeypatch.setattr(boundary, "analyse", lambda *_, **__: pytest.fail("the span was looked at"))
    summary = "## Decisions\n" + "".join(f"- entry {i}\n" for i in range(4))
    with pytest.raises(TooLarge, match="4 entries, at most 3"):
        examine(summary, task="", previous=summary, history=(), retained=(), host="openclaw")


def test_m_is_read_in_the_format_of_the_candidate():
    """The previous summary is parsed with the candidate's profile, so an entry that rests on it names it by the same identity."""
    summary = "## Decisions\n- Flight HAT136 costs $152\n"
    found = examine(summary, task="", previous=summary, history=(), retained=(), host="openclaw")
    (entry,) = found.analysis.entries
    assert entry.previous_key == found.parsed.entries[0].key
