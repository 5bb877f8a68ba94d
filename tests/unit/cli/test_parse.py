"""`winnow parse`: lossless, one line a file, clear about what it cannot read."""

import io
import json
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness import shared_data
from winnow.cli import summaries
from winnow.contracts.errors import Permanent, TooLarge

KEYS = ["file", "profile", "outcome", "segments", "entries"]
OPENCLAW = "## Decisions\r\n- First `é`\r\n  goes on\r\n\r\n## Open TODOs\n- [ ] Second"


def check(line: dict, text: str) -> None:
    """The invariants that the interface promises."""
    assert "".join(s["text"] for s in line["segments"]) == text
    data = text.encode("utf-8", "surrogatepass")
    at = 0
    numbers = []
    for segment in line["segments"]:
        size = len(segment["text"].encode("utf-8", "surrogatepass"))
        if segment["kind"] == "entry":
            one = line["entries"][len(numbers)]
            numbers.append(one["n"])
            assert one["span"] == [at, at + size]
            assert set(one) == {"n", "section", "text", "span"}
            assert one["text"] in data[at : at + size].decode("utf-8", "surrogatepass")
        at += size
    assert numbers == [e["n"] for e in line["entries"]] == list(range(1, len(numbers) + 1))


def test_a_plain_file_is_the_summary_byte_for_byte(winnow, tmp_path):
    """Line ends of every kind survive, spans are UTF-8 byte offsets, and the profile is recorded."""
    file = tmp_path / "summary.md"
    file.write_bytes(OPENCLAW.encode())
    ran = winnow("parse", str(file), "--host", "openclaw", "--json")
    assert (ran.code, ran.err) == (0, "")
    line = json.loads(ran.out)
    assert list(line) == KEYS
    assert (line["file"], line["profile"], line["outcome"]) == (str(file), "openclaw", "summary")
    check(line, OPENCLAW)
    assert [(e["n"], e["section"]) for e in line["entries"]] == [(1, "Decisions"), (2, "Open TODOs")]


def test_the_field_summary_of_a_json_file_is_parsed_with_the_files_host(winnow, tmp_path):
    """A JSON file names its host; the option wins over it."""
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"host": "openclaw", "summary": OPENCLAW}))
    assert json.loads(winnow("parse", str(file), "--json").out)["profile"] == "openclaw"
    assert json.loads(winnow("parse", str(file), "--host", "codex", "--json").out)["profile"] == "codex"


def test_standard_input_is_a_file_too(winnow, monkeypatch):
    """`-` reads standard input, JSON or text."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps({"summary": "- a\n"}).encode())))
    line = json.loads(winnow("parse", "-", "--json").out)
    assert line["file"] == "-"
    check(line, "- a\n")


def test_a_file_that_cannot_be_read_is_named_and_the_rest_goes_on(winnow, tmp_path):
    """One line a readable file, in order; the others are named on standard error; the code is 1."""
    good, binary, empty_json = tmp_path / "good.txt", tmp_path / "binary", tmp_path / "no.json"
    good.write_text("- a\n")
    binary.write_bytes(b"- a\xff\n")
    empty_json.write_text('{"text": "- a"}')
    ran = winnow("parse", str(tmp_path / "missing"), str(binary), str(empty_json), str(tmp_path), "nul\x00name", str(good), "--json")
    assert ran.code == 1
    assert [json.loads(line)["file"] for line in ran.out.splitlines()] == [str(good)]
    said = ran.err.replace("\n", " ")
    assert "missing: No such file" in said
    assert "byte 3 is not UTF-8" in said
    assert 'no JSON object with a text field "summary"' in said
    assert "Is a directory" in said
    assert "\x00" not in ran.err


def test_what_is_no_summary_has_a_reason_and_no_entries(winnow, tmp_path):
    """An error text is `not_a_summary`; its segments still join to the input."""
    file = tmp_path / "error.txt"
    text = "Error generating summary: 429 Too Many Requests"
    file.write_text(text)
    line = json.loads(winnow("parse", str(file), "--json").out)
    assert (line["outcome"], line["reason"], line["entries"]) == ("not_a_summary", "error_text", [])
    check(line, text)


def test_an_unknown_host_is_a_warning_and_no_error(winnow, tmp_path):
    """Detection takes over, and standard error says so."""
    file = tmp_path / "a.md"
    file.write_text("# A\n- one\n")
    ran = winnow("parse", str(file), "--host", "no such host", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["outcome"] == "summary"
    assert str(file) in ran.err


@pytest.mark.parametrize(
    "text", ["", "\x00", "\ufeff- a\n", "- a\r- b\r\n", "{", '{"summary": 1}', "[1]", "- a\u2028b\n\n\n", "\ud800 - x\n"]
)
def test_odd_texts_come_back_whole(winnow, tmp_path, text):
    """Nothing is normalised, trimmed or decoded twice; a lone surrogate in JSON survives."""
    file = tmp_path / "odd.dat"
    surrogate = "\ud800" in text
    file.write_bytes(json.dumps({"summary": text}).encode() if surrogate else text.encode())
    ran = winnow("parse", str(file), "--json")
    assert ran.code == 0
    check(json.loads(ran.out), text)


def test_a_person_sees_numbers_kinds_and_text(winnow, tmp_path):
    """Without --json a table shows each entry's number and bytes, and hostile text harmlessly."""
    file = tmp_path / "a.md"
    file.write_text("# A\n- one \x1b[31m [red]\n")
    ran = winnow("parse", str(file))
    assert ran.code == 0
    assert "1 entries" in ran.out
    assert "heading" in ran.out
    assert "- one \\x1b[31m [red]" in ran.out
    assert "\x1b" not in ran.out


def test_all_real_summaries_parse(winnow):
    """Each file of a real agent is a summary with entries, and comes back whole."""
    files = sorted((shared_data() / "real_summaries").glob("*.json"))
    ran = winnow("parse", *map(str, files), "--json")
    assert (ran.code, len(ran.out.splitlines())) == (0, len(files))
    for file, line in zip(files, map(json.loads, ran.out.splitlines()), strict=True):
        assert line["outcome"] == "summary"
        assert line["entries"]
        check(line, json.loads(file.read_text())["summary"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)  # each is a command; the parser has its own
@given(
    st.text(st.characters(codec="utf-8"), max_size=300)
    | st.lists(st.sampled_from(["- a\n", "## B\n", "\n", "```\n", "| x |\n", "\r"])).map("".join)
)
def test_any_text_comes_back_whole(winnow, tmp_path, text):
    """Whatever the file holds, its segments join to it and its spans are exact."""
    file = tmp_path / "any.txt"
    file.write_bytes(text.encode())
    ran = winnow("parse", str(file), "--json")
    assert ran.code == 0
    line = json.loads(ran.out)
    found = summaries.read(str(file))
    check(line, found.text)


def test_a_file_above_the_limit_is_refused(monkeypatch, tmp_path):
    """A file that no summary is as long as is refused before it is decoded."""
    monkeypatch.setattr(summaries, "FILE_BYTES", 10)
    file = tmp_path / "long"
    file.write_bytes(b"x" * 11)
    with pytest.raises(TooLarge, match="longer than"):
        summaries.read(str(file))
    file.write_bytes(b"x" * 10)
    assert summaries.read(str(file)).text == "x" * 10


def test_deeply_nested_json_is_a_text_or_an_error(tmp_path):
    """A file of a hundred thousand brackets ends neither in a crash nor in a stack overflow."""
    file = tmp_path / "deep.json"
    file.write_text('{"a":' * 100_000)
    with pytest.raises(Permanent, match="no JSON object"):
        summaries.read(str(file))
