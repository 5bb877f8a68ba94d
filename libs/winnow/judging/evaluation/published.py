"""Figures of the source-judged compaction paper that stand beside ours in reports: of other agents, other summaries, another judge."""

from typing import Final, NamedTuple


class Published(NamedTuple):
    """One published figure."""

    name: str
    text: str
    value: float


#: Of the composition analysis: OpenClaw's five-heading summaries in shadow mode, judged by Jev.
COMPOSITION: Final = (
    Published("summaries", "summaries", 667),
    Published("entries", "entries", 26_881),
    Published("unsupported.open_todos", "open TODOs unsupported", 0.677),
    Published("unsupported.pending_asks", "pending user asks unsupported", 0.861),
    Published("unsupported.reasoning", "reasoning entries unsupported", 0.387),
    Published("unsupported.reasoning.first", "reasoning entries unsupported at the first boundary", 0.549),
    Published("persistence.1", "unsupported reasoning entries present in the next summary", 0.205),
    Published("persistence.3", "unsupported reasoning entries present three summaries later", 0.053),
    Published("exact", "carried entries that match exactly", 0.900),
    Published("thresholds", "move of the pruned share between thresholds 0.3 and 0.7, at most", 0.102),
    Published("forward.entries", "entries in forward-looking sections", 0.152),
    Published("forward.pruned", "prunings in forward-looking sections", 0.595),
)
