"""Other writings of one value are no orphans; another value in the same writing is one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.compaction.analysis.boundaries import action, look, output, summary
from winnow.compaction.claims.atoms import Atom
from winnow.compaction.claims.derived import is_share, number_words
from winnow.compaction.claims.equivalents import Amounts, durations, numbers, runs
from winnow.compaction.text import place_of
from winnow.contracts.vocabulary import FindingKind


def refuted(entry: str, said: str) -> set[str]:
    """The values of an entry that are said nowhere or otherwise; beside what is said stand other numbers."""
    (one,) = look(summary(entry), action(0, "[tool call] get: {}"), output(1, f"{said}\nother: 77\nwidth 31")).entries
    return {finding.claim for finding in one.findings if finding.kind in {FindingKind.ORPHAN, FindingKind.CONTRADICTED}}


@pytest.mark.parametrize(
    ("entry", "said", "otherwise"),
    [
        ("The dump is 1.5 MB", "size: 1572864 bytes", "The dump is 1.8 MB"),
        ("The dump is 1.5MB", "size=1500000", "The dump is 2.5MB"),
        ("The log has 1.2M lines", "1,203,411 lines", "The log has 1.4M lines"),
        ("Disk of 200 GB", "total 209715200 KB", "Disk of 300 GB"),
        ("512K of RAM", "524288", "612K of RAM"),
        ("Revenue is $1.25 million", "revenue: 1250000", "Revenue is $1.35 million"),
        ("Memory is at 50.5 %", "usage: 0.505", "Memory is at 65.5 %"),
        ("The ratio is 87.5 %", "ratio: 0.875", "The ratio is 86.5 %"),
        ("accuracy 93.4%", "accuracy: 0.9342", "accuracy 92.4%"),
        ("accuracy 0.934", "accuracy: 93.4%", "accuracy 0.924"),
        ("It flies for 90 min", "duration 1h30m", "It flies for 95 min"),
        ("The job took 5400 seconds", "elapsed 1h30m", "The job took 5300 seconds"),
        ("It took 1 hour 30 minutes", "elapsed 5400s", "It took 1 hour 40 minutes"),
        ("Timeout is 30s", "timeout_ms: 30000", "Timeout is 40s"),
        ("Latency 0.25 s", "latency: 250ms", "Latency 0.35 s"),
        ("Call 555-123-4567", "tel 5551234567", "Call 555-123-4568"),
        ("Call 555.123.4567", "phone: +1 (555) 123-4567", "Call 555.129.4567"),
        ("Due on 24.05.2024", "due: 2024-05-24", "Due on 25.05.2024"),
        ("Due on 2024-05-24", "Due 24.05.2024", "Due on 2024-05-23"),
        ("Due on 2024-05-06", "Due 05/06/2024", "Due on 2024-05-07"),
        ("Due on May 24, 2024", "by 05/24/2024", "Due on May 23, 2024"),
        ("Costs 1.234,50 EUR", "1234.5", "Costs 1.235,50 EUR"),
        ("Price of €99.90", "price: 9990 cents", "Price of €98.90"),
        ("Port 0x1F90", "port 8080", "Port 0x1F91"),
        ("Port 8080", "port 0x1f90", "Port 8081"),
        ("Pi is 3.1416", "pi=3.14159265", "Pi is 3.1516"),
        ("There are 120 rows", "one hundred and twenty rows", "There are 130 rows"),
        ("Card ending 7447", "credit_card_5647447", "Card ending 7448"),
        ("From 800 to 900, a growth of 12.5 %", "800, then 900", "From 800 to 900, a growth of 14.5 %"),
        ("Opened in 2024", "2024-05-24", "Opened in 2023"),
    ],
)
def test_another_writing_is_no_orphan(entry, said, otherwise):
    """Sizes, shares, durations, telephone numbers, dates, decimals, bases and words: the same value is left alone, another one is told."""
    assert refuted(entry, said) == set()
    assert refuted(otherwise, said) != set()


def test_a_card_or_an_amount_is_no_year():
    """The digits of a year excuse no amount and no card."""
    assert refuted("The Visa ending in 2024 pays", "2024-05-24") == {"2024"}
    assert refuted("A charge of 2,024 was made", "2024-05-24") == {"2024"}


def test_numbers_in_words_have_several_writings():
    """Hundreds with and without "and", thousands before them; nothing below a hundred or from a million on."""
    assert number_words(120) == ("one hundred twenty", "one hundred and twenty")
    assert "two thousand three hundred" in number_words(2_300)
    assert number_words(99) == number_words(1_000_000) == ()


def test_shares_are_rounded_to_half_a_percent():
    """A percentage follows from two numbers as a share and as a growth; 0 is no whole."""
    assert is_share(125_000, ["800", "900"])
    assert is_share(890_000, ["800", "900"])
    assert not is_share(200_000, ["800", "900"])
    assert not is_share(0, ["0", "0"])


@given(st.text(max_size=200), st.text(max_size=80), st.sampled_from(["n2", "n4", "decimal", "hex", "date", "day", "of second", "code a9"]))
def test_any_text_is_read(text, entry, kind):
    """Whatever the texts, there is an answer, the same each time."""
    canon = {"hex": "0x1f", "date": "2024-05-24", "day": "05-24", "code a9": "a9", "decimal": "1.5"}.get(kind, "12")
    atom = Atom(canon, kind, canon, 2)
    amounts = Amounts(text.lower())
    assert amounts.say(atom, entry.lower(), [canon], 0) is amounts.say(atom, entry.lower(), [canon], 0)


@pytest.mark.parametrize(
    "hostile", ["1 " * 100_000, "1h" * 100_000, "1.234 " * 50_000, "(1-2) 3" * 40_000, "1d 1h 1m " * 30_000, "9" * 300_000]
)
def test_hostile_text_is_read_in_linear_time(hostile):
    """Hundreds of kilobytes of digits, units and separators come back within the time limit."""
    assert Amounts(hostile).say(Atom("55", "of minute", "55", 2), "it took 55 min", ["55", "min"], 0) in {True, False}


_PIECES = st.sampled_from(
    [
        "1.5",
        "12",
        "1h30m",
        "2d",
        " 4h",
        "30 s",
        "5 min",
        " and ",
        ",",
        " ",
        ".",
        "_",
        "é",
        "٣",
        "x9",
        "3 days",
        ", 4 apples",
        "90m",
        "h",
        "\ud800",
        "0",
    ]
)


@given(st.lists(_PIECES, max_size=30).map("".join))
def test_numbers_and_durations_are_those_of_the_plain_definition(text):
    """What is read by distinct runs and likely openings is what the patterns find from left to right."""
    assert numbers(runs(text)) == set(map(float, re.findall(r"(?<![\w.])\d{1,15}(?:\.\d{1,12})?", text)))
    plain = re.compile(
        r"(?<![\w.])(?=\d)(?:(\d{1,4}) ?d(?:ays?)?,? ?)?(?:(\d{1,4}) ?h(?:(?:ou)?rs?)?,? ?(?:and )?)?"
        r"(?:(\d{1,4}) ?m(?:in(?:ute)?s?)?,? ?(?:and )?)?(?:(\d{1,5}) ?s(?:ec(?:ond)?s?)?)?(?![a-z0-9])"
    )
    several = [found for found in plain.finditer(text) if sum(part is not None for part in found.groups()) > 1]
    assert [(begin, end) for begin, end, _ in durations(text)] == [found.span() for found in several]


@given(
    st.sampled_from(["24.5.2024", "5/24/2024", "may 24, 2024", "one hundred and twenty", "0xff", "24.5."]),
    st.lists(
        st.sampled_from(["24", ".", "5", "2024", "/", "may", ",", " ", "one hundred and twenty", "0xff", "a", "é", "_"]), max_size=16
    ).map("".join),
)
def test_a_writing_stands_where_the_plain_search_finds_it(writing, text):
    """That all its words stand somewhere is needed and costs less, and changes nothing."""
    assert Amounts(text).stands(writing) == (place_of(writing, text) >= 0)
