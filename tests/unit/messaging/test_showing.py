"""What is shown of a dead letter: text without secrets, however its bytes hold them."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winnow.messaging.showing import MARGIN, MOST_HEADERS, NAME_CHARS, SHORT_CHARS, shown

TOKEN = "ghp_" + "a1B2" * 9
KEY = "wnw_" + "Ab1_" * 10


def body_of(text: str) -> bytes:
    """A body as runtimes send it: the text is inside of JSON."""
    return json.dumps({"fleet": "f", "history": [{"text": text}]}).encode()


@pytest.mark.parametrize(
    "secret_in",
    [
        lambda s: f'password = "{s}"'.encode(),
        lambda s: json.dumps({"api_key": s}).encode(),
        lambda s: body_of(f'export\nclient_secret = "{s}"\nmore'),
        lambda s: body_of(json.dumps({"password": s})),
        lambda s: body_of(json.dumps({"inner": json.dumps({"secret": s})})),
        lambda s: f"postgresql://u:{s}@db.example/x".encode(),
        lambda s: b"\xff\xfe not text: " + json.dumps({"token": "t", "secret": s}).encode(),
        lambda s: json.dumps({"secret": s}).encode()[:-1] + b", not json",
    ],
)
def test_a_secret_is_not_shown_however_deep_it_stands(secret_in):
    """Plain, in JSON, in JSON inside of JSON, in a URL, in a broken body: the value is masked, the rest is there to be read."""
    secret = "hunter2-Zq81x"
    seen = shown(b"f/r", (), secret_in(secret), body_chars=2_000)
    assert secret not in seen.body
    assert "[masked:" in seen.body or "***" in seen.body
    assert seen.size == len(secret_in(secret))


def test_one_secret_is_masked_in_key_headers_and_body_alike():
    """What is known from one place is masked in all of them."""
    seen = shown(f"f/{TOKEN}".encode(), [("note", f"see {KEY}".encode()), (TOKEN, b"\xfe")], body_of(f"{TOKEN} {KEY}"), body_chars=500)
    said = repr(seen)
    assert TOKEN not in said
    assert KEY not in said
    assert seen.key == "f/[masked:github-token]"
    assert seen.headers[0] == ("note", "see [masked:winnow-key]")


def test_harmless_bytes_are_shown_as_they_are():
    """Escapes, broken text, an empty body and a tombstone: nothing is masked, nothing is lost."""
    text = 'a "quoted" \\"word\\", a path C:\\new and 1 \u2713'
    assert shown(b"f/r", [("x", b"\xfe")], text.encode() + b"\xff", body_chars=500).body == text + "\\xff"
    seen = shown(None, [("x", b"\xfe")], None, body_chars=500)
    assert (seen.key, seen.headers, seen.body, seen.cut, seen.size) == (None, (("x", "\\xfe"),), "", False, 0)


@settings(max_examples=15, deadline=None)
@given(at=st.integers(0, 3 * MARGIN), most=st.integers(0, 2 * MARGIN), filler=st.sampled_from(["x ", "é ", "- a\n", "\\ "]))
def test_a_secret_on_the_edge_is_not_half_shown(at, most, filler):
    """Wherever the text is cut, no part of a secret longer than its public beginning is shown."""
    text = (filler * (at // 2 + 1))[:at] + " " + TOKEN + " " + filler * MARGIN
    seen = shown(None, (), text.encode(), body_chars=most)
    assert TOKEN[:12] not in seen.body
    assert len(seen.body) <= most
    assert seen.cut is (len(seen.body) < len(text.replace(TOKEN, "[masked:github-token]")))


def test_a_page_is_made_of_a_letter_of_ten_megabytes():
    """Headers and body are bounded, and the word that more is left is there."""
    headers = [(f"h{n}" * 400, b"v" * 1_000_000) for n in range(MOST_HEADERS + 3)]
    seen = shown(b"k" * 1_000_000, headers, b"\xff<" * 5_000_000, body_chars=1_000)
    assert (len(seen.headers), seen.more_headers, seen.cut, seen.size) == (MOST_HEADERS, 3, True, 10_000_000)
    assert len(seen.body) == 1_000
    assert {(len(name), len(value)) for name, value in seen.headers} == {(NAME_CHARS, SHORT_CHARS)}
    assert len(seen.key) == SHORT_CHARS


@pytest.mark.parametrize(
    "word", [b"password ", b"pass='", b'secret="', b'\\"', b"[", b"wnw_", b"-----BEGIN %s KEY-----" % b"PRIVATE", b"\x00"]
)
def test_hostile_text_takes_no_longer_than_its_length(word):
    """Four times the text takes about four times as long."""

    def seconds(chars: int) -> float:
        value = word * (2 * chars // len(word))
        began = time.process_time()
        shown(None, (), value, body_chars=chars)
        return time.process_time() - began

    seconds(1_000)
    small = min(seconds(4_000) for _ in range(2))
    assert min(seconds(16_000) for _ in range(2)) < 10 * small + 0.02
