"""Search of a history, as the recovery tools ask for it: what one search costs at the most that it reads."""

from collections.abc import Iterator

from tests.benchmarks.core import large, timed
from tests.benchmarks.figures import Figure, against
from tests.benchmarks.progress import say
from winnow.compaction.search import search

#: Characters of all messages: what a search reads at most (`storage.search.MOST_BYTES`, in ASCII).
CHARACTERS = 8_000_000
#: Words that stand in one message, and words that stand in most.
RARE, COMMON = "zq81xk needle", "the file path output result"


def measure(*, quick: bool) -> Iterator[Figure]:
    """Measure a search for rare words and one for common words, beside looking through the same texts for one word in C.

    Raises:
        AssertionError: the one message with the rare words is not the first that is found.
    """
    characters = CHARACTERS // (8 if quick else 1)
    say(f"search: {characters:,} characters")
    messages = [message.text for message in large(characters, 1).history]
    messages.insert(len(messages) // 2, "the needle is ZQ81XK")
    found = search(RARE, messages).found
    if found[0].text != len(messages) // 2:
        text = "the message with the rare words does not come first"
        raise AssertionError(text)
    yardstick = timed(lambda: sum("zq81xk" in text.lower() for text in messages), 3)
    for name, query in (("rare", RARE), ("common", COMMON)):
        took = timed(lambda query=query: search(query, messages), 3)
        yield against(f"search, {name} words in {characters:,} characters (baseline: one look through them)", took, "ms", yardstick)
