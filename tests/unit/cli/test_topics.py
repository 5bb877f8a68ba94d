"""The topics of the registry on the command line."""

import json

from winnow.contracts.topics import TOPICS


def test_the_topics_are_listed_without_a_broker(winnow):
    """Every topic with its key, retention and largest record, under the prefix that is set."""
    ran = winnow("topics", "list", "--json", "--prefix", "p.")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 0
    assert [row["topic"] for row in rows] == ["p." + topic.name for topic in TOPICS]
    assert [row["max_record_bytes"] for row in rows] == [topic.max_record_bytes for topic in TOPICS]
    table = winnow("topics", "list").out
    assert [topic.name for topic in TOPICS if topic.name not in table] == []
