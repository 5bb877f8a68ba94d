"""Roots through previous summaries."""

from hypothesis import given
from hypothesis import strategies as st

from winnow.compaction.carry import Root, Support, roots
from winnow.contracts.vocabulary import ProvenanceClass, RootSource

ENV, PREV, DERIVED, USER = ProvenanceClass.ENVIRONMENT, ProvenanceClass.PREVIOUS, ProvenanceClass.DERIVED, ProvenanceClass.USER


def root(
    *sources: ProvenanceClass, supported: bool | None = True, key: str | None = None, parent: dict[str, RootSource] | None = None
) -> Root:
    """The root of one entry."""
    return roots([Support(n=1, sources=sources, previous_key=key, supported=supported)], parent)[1]


def test_an_output_of_the_span_is_a_root_whatever_the_previous_summary_says() -> None:
    """An entry that an output supports has the environment as its root, also when the entry of M that it continues had none."""
    assert root(ENV, PREV, key="k", parent={"k": RootSource.NONE}) == Root(source=RootSource.ENVIRONMENT)


def test_a_carried_entry_inherits_its_root() -> None:
    """An entry that rests on M only has the root of the entry that it rests on."""
    assert root(PREV, key="k", parent={"k": RootSource.USER}) == Root(source=RootSource.USER)


def test_an_unsourced_entry_of_the_previous_summary_launders_nothing() -> None:
    """An entry that rests on M only is inherited_unsourced where that entry of M had no source, however sure the judge is."""
    assert root(PREV, key="k", parent={"k": RootSource.NONE}) == Root(source=RootSource.NONE, inherited_unsourced=True)


def test_a_user_turn_saves_what_it_says_from_inherited_lack_of_source() -> None:
    """An entry that a user turn of this span states again has the user as its root."""
    assert root(PREV, USER, key="k", parent={"k": RootSource.NONE}) == Root(source=RootSource.USER)


def test_an_unknown_parent_gives_no_inheritance() -> None:
    """Where M's boundary is not known, or knows no such entry, the root is previous_unknown and nothing is pruned for it."""
    assert root(PREV, key="k", parent=None) == Root(source=RootSource.PREVIOUS_UNKNOWN)
    assert root(PREV, key="other", parent={"k": RootSource.NONE}) == Root(source=RootSource.PREVIOUS_UNKNOWN)


def test_unknown_stays_unknown_down_the_chain() -> None:
    """What rested on an unknown summary once rests on it for ever, and is never called sourced or unsourced."""
    assert root(PREV, key="k", parent={"k": RootSource.PREVIOUS_UNKNOWN}) == Root(source=RootSource.PREVIOUS_UNKNOWN)


def test_an_entry_below_tau_has_no_root() -> None:
    """What the judge found unsupported hands no root on, so that a shadow candidate carried along stays unsourced."""
    assert root(ENV, supported=False) == Root(source=RootSource.NONE)
    assert root(USER, supported=False) == Root(source=RootSource.USER)


def test_silence_of_the_judge_is_no_root() -> None:
    """Without a usable answer only the value index counts."""
    assert root(supported=None).source is RootSource.NONE
    assert root(ENV, supported=None).source is RootSource.ENVIRONMENT
    assert root(supported=True).source is RootSource.ENVIRONMENT


@given(st.data())
def test_a_chain_of_carried_entries_never_gains_a_root(data: st.DataObject) -> None:
    """Carried again and again on M alone, an unsourced entry stays inherited_unsourced, over any number of boundaries."""
    parent = {"k": RootSource.NONE}
    for _ in range(data.draw(st.integers(1, 6))):
        supported = data.draw(st.sampled_from([True, None]))
        found = root(PREV, supported=supported, key="k", parent=parent)
        assert found.inherited_unsourced
        parent = {"k": found.source}
