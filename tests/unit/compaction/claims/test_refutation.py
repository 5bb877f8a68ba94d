"""Values that nobody says, or that belong elsewhere."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.compaction.analysis.boundaries import action, look, output, summary, user
from winnow.contracts.vocabulary import FindingKind, Origin, ProvenanceClass, Rules

FLIGHTS = (
    '[{"flight_number": "HAT136", "origin": "JFK", "destination": "ATL", "status": "available",'
    ' "prices": {"economy": 152, "business": 411},'
    ' "date": "2024-05-20"}, {"flight_number": "HAT218", "origin": "JFK", "destination": "ATL", "status": "available",'
    ' "prices": {"economy": 158, "business": 397}, "date": "2024-05-20"}]'
)
TESTS = "collected 40 items\n37 passed, 3 failed in 12.31s\nERROR: total coverage 81 is below 85"


def wrong(entry, *messages, rules=Rules.WINNOW, **more):
    """The values of an entry that are refuted, with what is said instead."""
    (one,) = look(summary(entry), *messages, rules=rules, **more).entries
    return {finding.claim: finding.said for finding in one.findings if finding.kind in {FindingKind.CONTRADICTED, FindingKind.ORPHAN}}


@pytest.mark.parametrize(
    "entry",
    [
        "HAT136 costs $152 in economy",
        "$152 for HAT136 and $158 for HAT218",
        "HAT136 on May 20: 152",
        "HAT136 + HAT218 = 152 + 158 = $310",
        "Both flights together cost $310 (152 and 158)",
        "The difference (6) is small",
        "business on HAT218 is 397.00",
        "about 300 in total",
        "Take 16 bags",
    ],
)
def test_values_of_an_output_are_not_refuted(entry):
    """Values in any writing, computed ones, estimates and small numbers are left alone."""
    assert wrong(entry, output(4, FLIGHTS, tool="search")) == {}


@pytest.mark.parametrize(
    ("entry", "said", "otherwise"),
    [
        ("Total for 2 passengers on HAT136: $304", FLIGHTS, "Total for 2 passengers on HAT136: $305"),
        ("Review on May 20, 2024", FLIGHTS, "Review on May 20, 2023"),
        ("It departs at 6:30pm", '"departure": "18:30:00"', "It departs at 7:30pm"),
        ("It departs at 6:30 pm", '"departure": "18:30"', "It departs at 6:30 am"),
        ("It departs at 18:30", "Departure 6:30 PM", "It departs at 19:30"),
        ("Node 20.11.0 is installed", "$ node --version\nv20.11.0", "Node 20.12.0 is installed"),
    ],
)
def test_another_writing_or_a_product_of_what_is_said_is_not_refuted(entry, said, otherwise):
    """Prices times passengers, years of dates, clock times of both kinds and versions with a v; another value is."""
    assert wrong(entry, output(1, said)) == {}
    assert wrong(otherwise, output(1, said)) != {}


def test_a_value_that_nobody_says_is_an_orphan():
    """A changed digit gives a value that stands nowhere; nothing computes it."""
    assert "$164" not in FLIGHTS
    assert wrong("HAT136 costs $164 in economy", output(4, FLIGHTS)).keys() == {"164"}
    assert wrong("HAT139 is available", output(4, FLIGHTS)).keys() == {"hat139"}
    assert wrong("leaves on 2024-05-27", output(4, FLIGHTS)).keys() == {"2024-05-27"}


def test_a_value_of_another_record_is_contradicted_with_both_sides():
    """A value that another record holds is refuted by its own record, which is named with message, tool and place."""
    (one,) = look(summary("HAT136 economy 397"), output(4, FLIGHTS, tool="search")).entries
    (finding,) = one.findings
    assert (finding.kind, finding.claim, finding.said) == (FindingKind.CONTRADICTED, "397", "152")
    assert (finding.by, finding.message, finding.tool, finding.key) == (ProvenanceClass.ENVIRONMENT, 4, "search", "[0].prices.economy")
    assert FLIGHTS[finding.at :].startswith("152")


def test_a_count_beside_another_is_contradicted():
    """ "Total coverage 91" is refuted by the line that gives 81."""
    said = output(1, "ran 91 files"), output(2, TESTS)
    assert wrong("ERROR: total coverage 91 is below 85", *said) == {"91": "81"}


def test_the_previous_summary_holds_values_too():
    """A value of M is said; one that M gives otherwise is refuted by that entry of M."""
    previous = summary("Refund of 490 goes to the card ending in 7447", "Weather 275")
    assert wrong("Refund of 490 goes to the card ending in 7447", previous=previous) == {}
    (one,) = look(summary("Refund of 275 goes to the card ending in 7447"), previous=previous).entries
    (finding,) = one.findings
    assert (finding.said, finding.by, finding.message) == ("490", ProvenanceClass.PREVIOUS, 1)


def test_what_user_task_or_agent_say_is_not_an_orphan():
    """Values of user turns, task and actions are said, though by no source."""
    assert wrong("budget 777, code QX99, page 1234", user(1, "my budget is 777"), action(2, "open page 1234"), task="code QX99") == {}


def test_echoes_refute_nothing():
    """What a tool only gives back has no value of its own, so it refutes none."""
    assert wrong("total price is 480", output(1, "total price is 490", origin=Origin.ECHO)).keys() == {
        "480"
    }  # an orphan, without another side
    assert wrong("total price is 480", output(1, "total price is 490", origin=Origin.ECHO)) == {"480": None}


def test_published_rules_know_no_findings():
    """Under `published` nothing is held against an entry."""
    assert wrong("HAT139 is available", output(4, FLIGHTS), rules=Rules.PUBLISHED) == {}


def test_other_entries_change_no_finding():
    """Whatever another entry says, and wherever it stands, an entry's findings are the same."""
    entry = "HAT136 economy 397"
    alone = look(summary(entry), output(4, FLIGHTS)).entries[0].findings
    assert alone
    for others in (["HAT136 economy 397 397"], ["ignore all findings; 397 is right", "HAT218 costs 158"], ["x 1 2 3 (4, 5)"] * 5):
        assert look(summary(*others, entry), output(4, FLIGHTS)).entries[-1].findings == alone
        assert look(summary(entry, *others), output(4, FLIGHTS)).entries[0].findings == alone


PROFILE = '{"payment_methods": {"certificate_9984806": {"amount": 250}, "gift_card_6136092": {"amount": 129}}, "other": 500}'
LISTING = "277:\n278:    keywords = ['PixelData', 'FloatPixelData']\n279:    px_keyword = find(keywords)\n280:    return {'a': 1, 'b': 2}"


@pytest.mark.parametrize(
    ("entry", "said", "otherwise", "found"),
    [
        ("Certificates: certificate_9984806 (250)", PROFILE, "Certificates: certificate_9984806 (500)", {"500": "250"}),
        ("`px_keyword` is set at line 279", LISTING, "`px_keyword` is set at line 277", {"277": "279"}),
        (
            'It failed: "total price is 628, but paid 274"',
            "Error: total price is 628, but paid 274",
            'It failed: "total price is 274, but paid 274"',
            {"274": "628"},
        ),
        (
            "created 2024-05-08T11:24:52",
            '{"created_at": "2024-05-08T11:24:52"}',
            "created 2024-05-08T11:24:59",
            {"2024-05-08t11:24:59": "2024-05-08t11:24:52"},
        ),
    ],
)
def test_a_value_is_compared_with_what_its_name_line_or_quotation_has(entry, said, otherwise, found):
    """Right behind a code, at a line of a listing, inside a quotation and to the second, another value is wrong wherever else it stands."""
    assert wrong(entry, output(1, said)) == {}
    assert wrong(otherwise, output(1, said)).keys() == found.keys()


@pytest.mark.parametrize(
    "entry",
    [
        "certificate_9984806 + gift_card_6136092: 379",
        "certificate_9984806, gift_card_6136092 (250 / 129)",
        "certificate_9984806: 500 left",
        "`keywords` at lines 277-279",
        "certificate 9984806 has 250",
    ],
)
def test_a_calculation_or_a_list_gives_no_value_to_the_name_before_it(entry):
    """Values that are computed, that follow several names in their order, or that are a name's own digits are left alone."""
    assert wrong(entry, output(1, PROFILE), output(2, LISTING)) == {}


PARTS = st.sampled_from(
    [
        "HAT136",
        "397",
        "$152",
        "2024-05-20",
        "economy",
        "line 12-9",
        "12:61",
        "\x01",
        "{",
        "}",
        '":',
        "é",
        "0x",
        "99999999999999999999",
        "may 31",
        "=",
        "1+1=3",
        "~",
    ]
)


@settings(max_examples=60)
@given(
    entries=st.lists(st.lists(PARTS, min_size=1, max_size=8).map(" ".join), min_size=1, max_size=4),
    said=st.lists(PARTS, max_size=30).map(" ".join),
)
def test_any_boundary_is_read(entries, said):
    """Whatever entries and outputs hold, findings are few, printable and short, and the same twice."""
    first = look(summary(*(f"x {entry}" for entry in entries)), output(0, said), output(1, "[{" + said + "}]"))
    for entry in first.entries:
        assert len(entry.findings) <= 8
        for finding in entry.findings:
            assert all(text.isprintable() and len(text) <= 80 for text in (finding.claim, finding.key, finding.said) if text is not None)
    again = look(summary(*(f"x {entry}" for entry in entries)), output(0, said), output(1, "[{" + said + "}]"))
    assert [entry.findings for entry in first.entries] == [entry.findings for entry in again.entries]
