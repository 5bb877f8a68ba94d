"""The whole analysis: evidence, order, hostile input, growth, determinism."""

import hashlib
import math
import os
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.compaction.analysis.boundaries import action, dev, look, output, summary, user
from winnow.compaction.analysis import FEATURES_VERSION
from winnow.compaction.parse import parse
from winnow.compaction.passages import CHUNK_CHARS
from winnow.compaction.text import normalise, strip_marker
from winnow.compaction.values import values_of
from winnow.contracts.vocabulary import ProvenanceClass, Rules

WORDS = st.sampled_from(["alpha", "beta", "HAT136", "152", "7", "the", "refuses", "`x y`", "src/a.py", "\0", "文件", ",", "."])
TEXT = st.lists(WORDS, max_size=30).map(" ".join)


def test_evidence_is_cited_in_order_and_exact():
    """Pooled passages are numbered in order of the span, are exact slices of their outputs, and every citation points at one."""
    for boundary in dev()[::9]:
        found = boundary.analyse()
        by_number = {message.i: message for message in boundary.messages}
        assert [passage.id for passage in found.passages] == list(range(1, len(found.passages) + 1))
        places = [(passage.message, passage.start) for passage in found.passages]
        assert places == sorted(set(places))
        for passage in found.passages:
            assert by_number[passage.message].text[passage.start : passage.end] == passage.text
            assert len(passage.text) <= CHUNK_CHARS
        for entry, source in zip(found.entries, boundary.parsed.entries, strict=True):
            assert (entry.n, entry.text, entry.span) == (source.n, source.text, source.span)
            assert [one.rank for one in entry.evidence] == list(range(1, len(entry.evidence) + 1))
            assert len({one.passage for one in entry.evidence}) == len(entry.evidence) <= 3
            assert all(1 <= one.passage <= len(found.passages) for one in entry.evidence)


def test_pool_holds_the_environment_values():
    """The pooled evidence holds 99.5 % of the values that outputs say first, a range by both its ends."""
    held = total = 0
    for boundary in dev():
        found = boundary.analyse()
        pool = "\0".join(normalise(passage.text).lower() for passage in found.passages)
        for entry in found.entries:
            for value in values_of(normalise(strip_marker(entry.text))):
                if any(one.value == value.shown and one.origin is ProvenanceClass.ENVIRONMENT for one in entry.values):
                    total += 1
                    held += any(all(needle in pool for needle in way) for way in value.ways) or (value.name != "" and value.name in pool)
    assert total > 1_000
    assert held / total > 0.995


@pytest.mark.parametrize(
    "texts",
    [
        (),
        ("",),
        ("   \n  ",),
        ("the of and",),
        ("x",),
        ("x", "", "y"),
        ("\ud800 lone", "\0\0\0"),
    ],
)
def test_empty_and_tiny_corpora(texts):
    """No output, empty outputs, outputs without a token, fewer passages than are retrieved: no error, and finite features."""
    found = look(summary("x and y", "the of", "\0"), *(output(at, text) for at, text in enumerate(texts) if "\ud800" not in text))
    assert len(found.entries) == 3
    for entry in found.entries:
        assert all(math.isfinite(value) for value in entry.features.values())


def test_no_entries_no_work():
    """A candidate that is no summary has no entries, no passages and no warnings."""
    found = look(parse("Error generating summary: timeout", profile="langchain"), output(0, "x" * 1_000))
    assert (found.entries, found.passages, found.warnings) == ((), (), ())


@settings(max_examples=40)
@given(
    entries=st.lists(TEXT.filter(lambda text: text.strip(" .,\0")), min_size=2, max_size=5),
    hostile=TEXT,
    spoken=st.lists(st.tuples(st.sampled_from([output, action, user]), TEXT), max_size=5),
    task=TEXT,
    rules=st.sampled_from(list(Rules)),
)
def test_one_entry_never_changes_another(entries, hostile, spoken, task, rules):
    """Replacing the text of one entry leaves evidence scores, features and provenance of all others as they are, to the last bit."""
    messages = [make(i, text) for i, (make, text) in enumerate(spoken)]
    before = look(summary(*(f"zebra {entry}" for entry in entries)), *messages, task=task, rules=rules)
    after = look(summary(f"yes {hostile}", *(f"zebra {entry}" for entry in entries[1:])), *messages, task=task, rules=rules)
    for left, right in zip(before.entries[1:], after.entries[1:], strict=True):
        assert left.features == right.features
        assert (left.provenance, left.sources, left.values, left.previous_entry) == (
            right.provenance,
            right.sources,
            right.values,
            right.previous_entry,
        )
        assert [one.bm25 for one in left.evidence] == [one.bm25 for one in right.evidence]


HOSTILE = {
    "one line of 5 MB": "x" * 5_000_000,
    "5 MB of digits": "1" * 5_000_000,
    "2 MB of the same word": "HAT136 " * 300_000,
    "2 MB of numbers": " ".join(str(number % 1_000) for number in range(500_000)),
    "2 MB of marks": "e" + "\u0300\u0316" * 300_000,
    "2 MB of Chinese": "修改文件" * 150_000,
    "1 MB of regular expression": "((a+)+)$" * 130_000,
    "2 MB of base64": "QUJDREVG" * 250_000,
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_output_is_analysed(hostile):
    """Megabytes of hostile output, task and action come back within the time limit, and their values are still found."""
    entry = "HAT136 is 11 or 1 of 111, see `((a+)+)$` and 修改"
    found = look(summary(entry, "nothing"), action(0, hostile[:500_000]), output(1, hostile), task=hostile[:100_000])
    assert len(found.entries) == 2
    assert all(len(passage.text) <= CHUNK_CHARS for passage in found.passages)


@pytest.mark.parametrize("make", [summary, lambda text: summary("x", text, "y")], ids=["alone", "among others"])
def test_entry_of_a_megabyte_is_analysed(make):
    """An entry of nearly a megabyte, without blanks or all of values, is one entry with at most 32 values."""
    for text in ("x" * 900_000, "a1 " * 300_000, "`q` " * 220_000, '"' * 900_000):
        found = look(make(text), output(0, "a1 is q"))
        assert all(len(entry.values) <= 32 for entry in found.entries)


@pytest.mark.long
def test_ten_thousand_entries_over_a_long_span(monkeypatch):
    """Ten thousand entries over half a megabyte come back within the time limit, with the cheaper roads recorded."""
    monkeypatch.setattr("winnow.compaction.lookup.MAX_SCANNED", 200_000_000)  # a tenth: the test need not wait for the rest
    parsed = summary(*(f"item {number} of job{number % 97} is ready at 10.{number % 256}.0.1" for number in range(10_000)))
    span = "\n".join(f"job{number % 97} item {number} ready at 10.{number % 256}.0.1 with code C{number}" for number in range(9_000))
    found = look(parsed, output(0, span), task="watch the jobs")
    assert len(found.entries) == 10_000
    assert [warning.split(":")[0] for warning in found.warnings] == ["values_by_tokens", "retrieval_capped", "refutation_capped"]
    assert all(entry.evidence for entry in found.entries)


def test_memory_is_bounded_by_the_input(monkeypatch):
    """Entries are matched a few at a time: memory stays a small multiple of the texts where entries times passages would not."""
    monkeypatch.setattr("winnow.compaction.postings._BLOCK", 20_000)
    parsed = summary(*(f"item {number} is ready" for number in range(1_000)))
    span = "\n".join(f"item {number} is ready with code C{number}" for number in range(9_000))
    look(summary("warm"), output(0, span))
    tracemalloc.start()
    look(parsed, output(0, span))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 150 * len(span)


def test_values_by_tokens_says_what_searching_says(monkeypatch):
    """Where values are looked up by their tokens, whole words are found by the same speakers as by searching."""
    messages = [action(0, "try HAT210"), output(1, "HAT136 costs 152\nsee src/core/main.py"), user(2, "call me Mia")]
    parsed = summary("HAT136 for 152 in src/core/main.py", "HAT210 again", "asked by Mia", "unheard XY99")
    previous = summary("HAT777 was full")
    searched = look(parsed, *messages, task="Book", previous=previous)
    monkeypatch.setattr("winnow.compaction.lookup.MAX_SCANNED", 0)
    by_tokens = look(parsed, *messages, task="Book", previous=previous)
    assert [entry.values for entry in by_tokens.entries] == [entry.values for entry in searched.entries]
    assert [entry.provenance for entry in by_tokens.entries] == [entry.provenance for entry in searched.entries]
    assert by_tokens.warnings


def test_many_places_of_a_value_are_capped(monkeypatch):
    """A value that stands in more places than its share of windows still has its speaker, and M does not hide the outputs."""
    messages = [output(at, f"HAT136 is 5 of {at}") for at in range(60)]
    previous = summary(*(f"HAT136 was 5 on day {day}" for day in range(40)))
    full = look(summary("HAT136 is 5"), *messages, previous=previous)
    monkeypatch.setattr("winnow.compaction.lookup.MAX_WINDOWS", 1)
    capped = look(summary("HAT136 is 5"), *messages, previous=previous)
    assert capped.entries[0].values == full.entries[0].values
    assert capped.entries[0].features == full.entries[0].features


PROGRAM = """
import hashlib, sys
from tests.unit.compaction.analysis.boundaries import look, summary, output, action, user
from winnow.judging.formula import formula
entries = [f"{w} costs {n} at src/{w}.py, {w}Name was refused" for n, w in enumerate("alpha beta gamma delta epsilon".split() * 4, 100)]
span = [output(i, "\\n".join(entries[i:]) + " omega" * i, tool="t") for i in range(12)]
found = look(summary(*entries), action(20, "alpha"), *span, user(21, "beta costs 5"), task="gamma", previous=summary(*entries[5:9]))
digest = hashlib.sha256()
for entry in found.entries:
    digest.update(entry.model_dump_json().encode())
for passage in found.passages:
    digest.update(passage.model_dump_json().encode())
print(digest.hexdigest())
"""


def test_answer_is_the_same_in_every_process():
    """Fresh processes with other hash seeds give the same bytes."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PATH": os.environ["PATH"], "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("0", "1", "4242")
    }
    assert len(digests) == 1
    assert len(digests.pop()) == len(hashlib.sha256().hexdigest())


def test_work_grows_no_faster_than_the_span():
    """Four times the span takes less than six times the calls of Python code, and four times the entries too."""

    def calls(entries: int, lines: int) -> int:
        parsed = summary(*(f"item {number} is ready, code C{number}" for number in range(entries)))
        span = "\n".join(f"line {number}: item {number} waits, code C{number}" for number in range(lines))
        count = 0

        def counter(frame, event, arg):
            nonlocal count
            count += 1

        sys.setprofile(counter)
        try:
            look(parsed, output(0, span))
        finally:
            sys.setprofile(None)
        return count

    look(summary("warm"), output(0, "up"))
    base = calls(20, 500)
    assert calls(20, 2_000) < 6 * base
    assert calls(80, 500) < 6 * base


def test_version_is_stated():
    """Features carry a version that names the text processing they rest on."""
    assert FEATURES_VERSION == "4.2"
