"""Properties in a word against the fields of records."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.compaction.analysis.boundaries import action, look, output, summary, user
from winnow.compaction.claims.properties import CLAIM, misstated, stated
from winnow.compaction.corpus import read
from winnow.contracts.vocabulary import FindingKind, Rules

ISSUE = '{"number": 812, "status": "open", "owner": "mara", "labels": [{"name": "bug"}], "draft": "no"}'
CLOSED = ISSUE.replace('"open"', '"closed"')
OTHER = CLOSED.replace("812", "813")
PROFILE = '{"user_id": "mia_li_3668", "membership": "gold", "insurance": "no"}'


def wrong(entry, *said, after=()):
    """What is told of one entry: key, claim, what is said instead, and the number of the output."""
    messages = [output(at, text, tool="get") for at, text in enumerate(said)]
    (one,) = look(summary(entry), *messages, *after).entries
    return [(found.key, found.claim, found.said, found.message) for found in one.findings if found.kind is FindingKind.CONTRADICTED]


@pytest.mark.parametrize(
    ("entry", "said", "expected"),
    [
        ("Issue 812: status closed, three comments", ISSUE, ("status", "closed", "open", 0)),
        ("Issue #812 has status: closed", ISSUE, ("status", "closed", "open", 0)),
        ("Issue 812: owner is jo", ISSUE, ("owner", "jo", "mara", 0)),
        ("Work goes on; branch: `main`", "branch: develop\nclean", ("branch", "main", "develop", 0)),
        ("host = db-2.internal", "host: db-1.internal\nport: 5432", ("host", "db-2.internal", "db-1.internal", 0)),
        ("`mia_li_3668` is a silver member", PROFILE, ("membership", "silver", "gold", 0)),
        ("`mia_li_3668`: insurance yes", PROFILE, ("insurance", "yes", "no", 0)),
    ],
)
def test_another_word_in_the_place_of_a_fields_value_is_contradicted(entry, said, expected):
    """A key that the latest record of the subject gives another word is told with both words, the key and the output's number."""
    assert wrong(entry, said) == [expected]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("Issue 812: status open, owner: mara", (ISSUE,)),
        ("Issue 812: status: open", (ISSUE, OTHER)),  # the latest record is another issue's
        ("Issue 812: status: closed", (ISSUE, CLOSED)),  # the latest value wins
        ("Status: closed", (ISSUE, OTHER)),  # of no subject, and records differ
        ("Issue 812: status was closed before", (ISSUE,)),
        ("Issue 812 should get status: closed", (ISSUE,)),
        ("[ ] Issue 812: status: closed", (ISSUE,)),
        ("Update issue 812: status: closed", (ISSUE,)),
        ("Issue 812: summary: discussed", (ISSUE,)),  # no key of the record
        ("Issue 812: status: discussed", (ISSUE,)),  # no value of the key
        ("A gold member has two bags", ("no record at all",)),
        ("The parcel's status: pending", ('{"service": "redis", "status": "active"}',)),  # of something else
        ("`mia_li_3668` has no silver member discount", (PROFILE,)),
    ],
)
def test_what_is_right_wished_for_or_uncertain_is_left_alone(entry, said):
    """Agreeing, past and wished values, values of other records and words that are no value of the key are not refuted."""
    assert wrong(entry, *said) == []


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("Branch: feature/login", ("On branch feature/login\nnothing to commit", "on:\n  push:\n    branch: main\n")),
        ("Host: db-2.internal", ("connected to db-2.internal, port 5432", "host: localhost\nport: 5432")),
        ("Repo: acme/widgets", ("origin https://github.com/acme/widgets.git (fetch)", "repo: local\n")),
    ],
)
def test_a_name_that_an_output_says_in_other_words_is_left_alone(entry, said):
    """A field of another thing does not refute a name that the environment gave without a key; one that nobody says it does."""
    assert wrong(entry, *said) == []
    assert wrong(entry, said[1]) != []


def test_an_outdated_value_is_contradicted():
    """Of a key with several values over time the latest counts."""
    assert wrong("Issue 812: status: open", ISSUE, CLOSED) == [("status", "open", "closed", 1)]


def test_the_same_thing_on_another_day_outdates_nothing():
    """Where an older record agrees, a later one that does not hold all that the entry names may answer another question."""
    monday, tuesday = '{"flight": "HAT136", "status": "confirmed"}', '{"flight": "HAT136", "status": "cancelled"}'
    assert wrong("HAT136 on 2024-05-24 has status: confirmed", monday, tuesday) == []
    assert wrong("HAT136 on 2024-05-24 has status: confirmed", tuesday) != []


def test_what_the_agent_changes_afterwards_is_left_alone():
    """A value that the agent or a user names with its key behind the last output may be true by now."""
    assert wrong("Issue 812: status: closed", ISSUE, after=(action(1, 'update(812, {"status": "closed"})'),)) == []
    assert wrong("Issue 812: status: closed", ISSUE, after=(user(1, "I have set the status to closed"),)) == []
    assert wrong("Issue 812: status: closed", ISSUE, after=(action(1, "It looks fine, and the door is closed"),)) != []


def test_published_rules_know_no_findings():
    """Under `published` rules nothing is held against an entry."""
    (one,) = look(summary("Issue 812: status: closed"), output(0, ISSUE), rules=Rules.PUBLISHED).entries
    assert one.findings == ()


@given(st.text(max_size=200), st.text(max_size=400))
def test_any_text_is_read(entry, said):
    """Whatever entry and output hold, a finding names a value that stands in the output and is not the entry's."""
    corpus = read("the task", [], [output(0, said)], Rules.WINNOW)
    for found in misstated([entry.lower()], [False], corpus):
        assert found.said in said.lower()
        assert found.said != found.claim


def test_cost_grows_with_the_text_only():
    """Eight times the text takes at most sixteen times the time, whatever it repeats."""

    def cost(times):
        said = '{"status": "open"} status status: [ ' * times
        corpus = read("the task", [], [output(0, said)], Rules.WINNOW)
        entries = [f"record {number}_{number}: status: closed" for number in range(80)]
        began = time.process_time()
        list(misstated(entries, [False] * 80, corpus))
        return time.process_time() - began

    least = min(cost(500) for _ in range(3))
    assert min(cost(4_000) for _ in range(3)) <= 16 * max(least, 1e-3)


_PIECES = st.sampled_from(
    ["status", "is", "is now", ":", " : ", "=", " ", "open", "a", "_x", "9", "branch", "`main`", "-", ".", "b" * 33, "(", "is set to", "é"]
)


@given(st.lists(_PIECES, max_size=24).map("".join), st.lists(_PIECES, max_size=24).map(" ".join))
def test_claims_are_those_of_the_pattern(glued, spaced):
    """Trying the pattern only where a separator stands finds what it finds from left to right."""
    for text in (glued, spaced):
        assert [match.span() for match in stated(text)] == [match.span() for match in CLAIM.finditer(text)]
