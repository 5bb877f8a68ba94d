"""Winnow: source-judged compaction at the boundary of long-running agents."""

__version__ = "0.1.0"
