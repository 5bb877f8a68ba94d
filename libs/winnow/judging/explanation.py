"""One line that a person can check: why an entry has a source, or why none was found."""

from collections.abc import Mapping, Sequence

from winnow.compaction.text import one_line
from winnow.contracts.events import Entry, Passage, ValueOrigin
from winnow.contracts.vocabulary import ProvenanceClass, Verdict

#: Characters of an explanation, and of a value in it: values are untrusted text.
LINE_CHARS = 200
_VALUE_CHARS = 40
#: Values that are named.
_NAMED = 3


def explain(entry: Entry, verdict: Verdict, pool: Mapping[int, Passage]) -> tuple[str, tuple[int, ...]]:
    """The explanation and the numbers of the passages of `pool` that it rests on."""
    sentence, cited = _of_class(entry, pool)
    if verdict is Verdict.UNSOURCED and entry.sources:
        sentence = f"too little support: {sentence}"
    elif verdict is Verdict.SOURCED and not entry.sources:
        sentence = f"worded like outputs or the previous summary; {sentence}"
    return one_line(sentence, LINE_CHARS), cited


def _of_class(entry: Entry, pool: Mapping[int, Passage]) -> tuple[str, tuple[int, ...]]:
    """What is said of the entry's own class."""
    if entry.provenance is ProvenanceClass.ENVIRONMENT:
        return _environment(entry, pool)
    return _without_passages(entry), ()


def _without_passages(entry: Entry) -> str:
    """What is said of every class but environment."""
    match entry.provenance:
        case ProvenanceClass.PREVIOUS:
            place = "the previous summary" if entry.previous_entry is None else f"entry {entry.previous_entry} of the previous summary"
            found = f"carried from {place} ({entry.previous_similarity:.2f})"
        case ProvenanceClass.DERIVED:
            found = "computed from its own numbers, which an output or the previous summary says"
        case ProvenanceClass.USER:
            found = _said(entry, ProvenanceClass.USER, "user turn")
        case ProvenanceClass.TASK:
            found = _task(entry)
        case ProvenanceClass.AGENT:
            found = _said(entry, ProvenanceClass.AGENT, "action")
        case _:
            values = _first_said(entry, ProvenanceClass.NOWHERE)
            found = f"{_count(len(values))} said nowhere: {_names(values)}" if values else "neither task, span nor previous summary says it"
    return found


def _environment(entry: Entry, pool: Mapping[int, Passage]) -> tuple[str, tuple[int, ...]]:
    """Values that an output says first, else the passage that its words come from."""
    values = _first_said(entry, ProvenanceClass.ENVIRONMENT)
    if values:
        said = [value.message for value in values]
        message = max(said, key=said.count)  # ties: the first
        best = [value for value in values if value.message == message]
        cited = tuple(found.passage for found in entry.evidence if (passage := pool.get(found.passage)) and passage.message == message)
        return f"{_count(len(best))} first seen in output {_place(message, best[0].tool)}: {_names(best)}", cited
    if entry.evidence and (passage := pool.get(entry.evidence[0].passage)) is not None:
        return f"its wording stands in output {_place(passage.message, passage.tool)} and in no other text", (passage.id,)
    return "an output says it", ()


def _task(entry: Entry) -> str:
    """Values or wording that stand in the task."""
    values = _first_said(entry, ProvenanceClass.TASK)
    if not values:
        return "its wording stands in the task, no output adds to it"
    if len(values) == len(entry.values):
        which = {1: "its value stands", 2: "both values stand"}.get(len(values), f"all {len(values)} values stand")
        return f"{which} in the task, no output adds to {'it' if len(values) == 1 else 'them'}: {_names(values)}"
    return f"{len(values)} of {len(entry.values)} values stand in the task, no output adds to them: {_names(values)}"


def _said(entry: Entry, kind: ProvenanceClass, who: str) -> str:
    """Values or wording that a user or the agent said first."""
    values = _first_said(entry, kind)
    if values and values[0].message is not None:
        return f"first said in {who} #{values[0].message}: {_names(values)}"
    return f"its wording stands in {who}s of the span alone"


def _first_said(entry: Entry, kind: ProvenanceClass) -> list[ValueOrigin]:
    """The entry's values of a class."""
    return [value for value in entry.values if value.origin is kind]


def _count(values: int) -> str:
    """A number of values in words."""
    return "1 value" if values == 1 else f"{values} values"


def _place(message: int | None, tool: str | None) -> str:
    """An output by number and tool."""
    return f"#{message}" + (f" ({one_line(tool, _VALUE_CHARS)})" if tool else "")


def _names(values: Sequence[ValueOrigin]) -> str:
    """The first values by name."""
    named = ", ".join(one_line(value.value, _VALUE_CHARS) for value in values[:_NAMED])
    return f"{named}, …" if len(values) > _NAMED else named
