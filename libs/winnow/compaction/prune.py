"""Prune: the summary without whole entries. Kept bytes are identical; nothing is added, nothing renumbered."""

from collections.abc import Collection

from winnow.compaction.segments import Parsed


def scaffold(parsed: Parsed, kept: Collection[int]) -> frozenset[int]:
    """Return the numbers of all parents and lead-ins of the entries in `kept`: they stay whatever their score.

    Raises ValueError where `kept` names an entry that the summary does not have.
    """
    entries = parsed.entries
    unknown = [n for n in kept if not 1 <= n <= len(entries)]
    if unknown:
        raise ValueError(f"the summary has entries 1 to {len(entries)}, not {unknown[:5]}; pass numbers of this parse")
    above: set[int] = set()
    open_numbers = list(kept)
    while open_numbers:
        entry = entries[open_numbers.pop() - 1]
        for n in (entry.parent, entry.lead_in):
            if n is not None and n not in above:
                above.add(n)
                open_numbers.append(n)
    return frozenset(above)


def render(parsed: Parsed, kept: Collection[int]) -> str:
    """Return the summary without the segments of the entries that are not in `kept`.

    Raises ValueError where `kept` names an unknown entry, or lacks the scaffold of an entry that it has (see `scaffold`).
    """
    wanted = frozenset(kept)
    missing = scaffold(parsed, wanted) - wanted
    if missing:
        raise ValueError(f"entries {sorted(missing)[:5]} are scaffold of kept ones; add scaffold(parsed, kept) to kept")
    return "".join(segment.text for segment in parsed.segments if segment.entry is None or segment.entry in wanted)
