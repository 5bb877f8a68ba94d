"""The recovery tools over a Winnow in memory: what a model may do wrong, and a Winnow that is away."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from winnow.client import WinnowClient, tools
from winnow.client.api import PrunedPage
from winnow.client.testing import MemoryTransport
from winnow.contracts.errors import Retryable
from winnow.contracts.places import NOTICE

HANDLE = "h" * 32
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)


def filled() -> MemoryTransport:
    transport = MemoryTransport()
    transport.originals = {HANDLE: b"12 rows\n", "b" * 32: b"\xff\xfe", "e" * 32: b""}
    transport.pruned_entries = {"r": PrunedPage()}
    return transport


async def test_what_a_model_reads():
    """The exact text comes alone; bytes that are none come as base64 with a note; lists begin with the notice."""
    async with WinnowClient(filled()) as client:
        exact = await tools.call(client, "expand", {"handle": HANDLE})
        assert (exact.text, exact.note, exact.error, exact.about["source"]) == ("12 rows\n", None, False, False)
        binary = await tools.call(client, "expand", {"handle": "b" * 32})
        assert (binary.text, binary.base64, binary.error) == ("", "//4=", False)
        empty = await tools.call(client, "expand", {"handle": "e" * 32})
        assert (empty.text, empty.error, empty.about["size"]) == ("", False, 0)
        found = await tools.call(client, "search_history", {"query": "rows"}, run="r")
        assert found.text == f"{NOTICE}\n{HANDLE} [summary entry, run r, compaction 1]: 12 rows"
        assert (await tools.call(client, "pruned_entries", {}, run="r")).text.startswith(NOTICE)


async def test_an_outage_is_an_error_that_says_so():
    """While Winnow is away each tool says that nothing was recovered, and that a later try may do."""
    transport = filled()
    transport.outage = Retryable("the gateway cannot be reached")
    async with WinnowClient(transport) as client:
        for name, arguments in (("expand", {"handle": HANDLE}), ("search_history", {"query": "x"}), ("pruned_entries", {"run": "r"})):
            answer = await tools.call(client, name, arguments)
            assert answer.error
            assert answer.text.startswith("Nothing was recovered, Winnow does not answer now")


@settings(deadline=None)
@given(st.sampled_from([*(tool.name for tool in tools.TOOLS), "other"]), st.dictionaries(st.sampled_from(
    ["handle", "start", "query", "run", "cursor", "limit", "more"]), ANYTHING, max_size=5))  # fmt: skip
def test_nothing_that_a_model_makes_up_raises(name, arguments):
    """Whatever the arguments are, the answer is a text for the model; it is an error unless something was given or listed."""

    async def ask() -> tools.Answer:
        async with WinnowClient(filled()) as client:
            return await tools.call(client, name, arguments)

    answer = asyncio.run(ask())
    assert answer.error or answer.text.startswith(NOTICE) or answer.about
