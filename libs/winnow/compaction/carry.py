"""Roots: what an entry's support rests on in the end, followed through the previous summary (design, *Carry*).

Whatever is kept once stands in the next previous summary and would be a source for ever. So an entry that rests on the previous
summary only inherits the root of the entry it rests on, and one without a root is treated as unsourced: an unpruned candidate, in
shadow or annotate mode or after a time-out, launders nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from winnow.contracts.vocabulary import ProvenanceClass, RootSource

#: Classes that carry a root of their own, best first; the previous summary has none of its own.
_OWN = {
    ProvenanceClass.ENVIRONMENT: RootSource.ENVIRONMENT,
    ProvenanceClass.DERIVED: RootSource.DERIVED,
    ProvenanceClass.USER: RootSource.USER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """What supports one entry, as the retriever and the judge saw it without memory."""

    n: int
    #: All classes that support it.
    sources: tuple[ProvenanceClass, ...]
    #: Identity of the entry of M that it rests on, if any.
    previous_key: str | None
    #: The judge's word: True at or above tau, False below, None where it gave no usable answer.
    supported: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The root of one entry."""

    source: RootSource
    #: The entry rests on M only, and what it rests on there had no root.
    inherited_unsourced: bool = False


def roots(entries: Sequence[Support], parent: Mapping[str, RootSource] | None) -> dict[int, Root]:
    """Resolve the root of each entry.

    `parent` maps the entry identities of the boundary that wrote M to their roots; None where M's boundary is not known.
    """
    return {entry.n: _root(entry, parent) for entry in entries}


def _root(entry: Support, parent: Mapping[str, RootSource] | None) -> Root:
    """Resolve one entry: what an output supports first, then what it inherits, then a user turn, then the judge's bare word."""
    own = next((root for source, root in _OWN.items() if source in entry.sources), None)
    if entry.supported is False:
        return Root(source=RootSource.USER if own is RootSource.USER else RootSource.NONE)
    if own in {RootSource.ENVIRONMENT, RootSource.DERIVED}:
        return Root(source=own)
    inherited = None
    if ProvenanceClass.PREVIOUS in entry.sources:
        inherited = RootSource.PREVIOUS_UNKNOWN if parent is None else parent.get(entry.previous_key or "", RootSource.PREVIOUS_UNKNOWN)
    if own is not None and inherited in {None, RootSource.NONE}:
        return Root(source=own)
    if inherited is not None:
        return Root(source=inherited, inherited_unsourced=inherited is RootSource.NONE)
    # The judge found support that the value index does not name (a paraphrase): its word counts, its silence does not.
    return Root(source=RootSource.ENVIRONMENT if entry.supported else RootSource.NONE)
