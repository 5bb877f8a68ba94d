"""Text for matching: normalisation, words, tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.compaction import text as texts


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("flights", ("flight",)),
        ("modes", ("mode",)),
        ("cities", ("citi",)),
        ("operations", ("oper",)),
        ("the", ()),
        ("bus", ("bus",)),
        ("HAT136", ("hat136",)),
        ("executeBash", ("executebash", "execute", "bash")),
        ("parseHTTPReply", ("parsehttprep", "parse", "http", "reply")),
        ("user_turns_survive", ("user_turns_survive", "user", "turn", "survive")),
        ("_private", ("_private", "private")),
        ("utf8Name", ("utf8name",)),
    ],
)
def test_word_becomes_whole_and_parts(word, expected):
    """A word is itself and the parts of its snake and camel case, stemmed, without function words."""
    assert texts.tokens_of_word(word) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("修改文件 main.py", ["修改", "改文", "文件", "main", "py"]),
        ("ファイルを開く", ["ファ", "ァイ", "イル", "ルを", "を開", "開く"]),
        ("แก้ไขไฟล์", ["แก", "ก้", "้ไ", "ไข", "ขไ", "ไฟ", "ฟล", "ล์"]),
        ("파일 열기", ["파일", "열기"]),
        ("修", ["修"]),
        ("исправить файл", ["исправить", "файл"]),
        ("modify修改File", ["modify", "修改", "file"]),
    ],
)
def test_scripts_without_blanks_are_bigrams(text, expected):
    """Chinese, Japanese, Thai and Korean become bigrams of characters, other scripts words."""
    assert texts.tokens(texts.normalise(text)) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("1,474 of 12,345,678", "1474 of 12345678"),
        ("1,47 and 1,4744", "1,47 and 1,4744"),
        ("a\u00a0b", "a b"),
        ("HAT\u200b136\ufeff", "HAT136"),
        ("\uff28\uff21\uff34\uff11", "HAT1"),
        ("“quoted” – it’s", '"quoted" – it\'s'),
        ("cafe\u0301", "café"),
    ],
)
def test_normalise_folds_what_looks_alike(raw, expected):
    """Compatibility forms, invisible characters, quotation marks and thousands separators do not part equal values."""
    assert texts.normalise(raw) == expected


@pytest.mark.parametrize("hostile", ["\0" * 5, "\ud800x", "e" + "\u0300\u0316" * 40_000, "\x01 a \x01", "\ufdfa" * 3_000, "_" * 9_000])
def test_hostile_text_is_read(hostile):
    """NUL, surrogates, runs of combining marks, our own mark and expanding ligatures are text like any other."""
    normalised = texts.normalise(hostile)
    found = texts.tokens(normalised)
    assert texts.stream([normalised]).of(0) == found
    assert all(len(token) <= texts.WORD_CHARS for token in found)
    assert "\x01" not in found


@given(st.lists(st.text(alphabet=st.characters(max_codepoint=0x3FF) | st.sampled_from("aB_1 \n\x01\x1f\x1c,文"), max_size=40), max_size=8))
def test_stream_is_the_tokens_of_each_text(raw):
    """Tokenising many texts at once gives each text the tokens that it has alone."""
    normal = [texts.normalise(text) for text in raw]
    stream = texts.stream(normal)
    assert [stream.of(at) for at in range(len(normal))] == [texts.tokens(text) for text in normal]
    assert stream.lengths() == [len(texts.tokens(text)) for text in normal]


@given(st.lists(st.text(alphabet="ab é文", max_size=12), min_size=1, max_size=5), st.data())
def test_text_can_be_put_into_a_stream(raw, data):
    """A prepared text in front of another is the stream of all of them, and word lists are the words of each text."""
    at = data.draw(st.integers(0, len(raw) - 1))
    prepared = texts.prepared(raw[at])
    rest = [texts.normalise(text) for number, text in enumerate(raw) if number != at]
    assert texts.stream(rest).with_text(at, prepared.tokens) == texts.stream([texts.normalise(text) for text in raw])
    assert prepared.lower == texts.normalise(raw[at]).lower()
    assert texts.word_lists(rest) == [texts.words(text) for text in rest]


@pytest.mark.parametrize(
    ("entry", "bare"),
    [
        ("- text", "text"),
        ("- [ ] do it", "do it"),
        ("* [x] done", "done"),
        ("12. twelfth", "twelfth"),
        ("3) third", "third"),
        ("- - twice", "- twice"),
        ("**Bold** start", "**Bold** start"),
        ("-5 degrees", "-5 degrees"),
        ("1.5 GB", "1.5 GB"),
        ("", ""),
    ],
)
def test_marker_is_stripped_once(entry, bare):
    """A list marker and check box go, whatever only looks like one stays."""
    assert texts.strip_marker(entry) == bare


def test_one_line_is_safe_for_a_terminal():
    """Control characters, line breaks and direction marks are escaped, and the limit holds."""
    shown = texts.one_line("a\x1b[31m\nb\u202ec\0" + "z" * 500, 40)
    assert shown.isprintable()
    assert len(shown) == 40
    assert shown.startswith(r"a\x1b[31m\nb\u202ec\x00z")
    assert texts.one_line("plain", 40) == "plain"
