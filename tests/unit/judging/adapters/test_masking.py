"""Secrets and image bytes do not leave; everything else does."""

import base64
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness import shared_data
from winnow.judging.adapters.masking import Masker

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
SECRETS = {
    "github-token": "ghp_" + "a1B2" * 9,
    "aws-access-key": "AKIA" + "ABCDEFGH12345678",
    "stripe-access-key": "sk_live_" + "a1" * 20,
    "slack-token": "xoxb-1234-5678-abcdefghijkl",
    "json-web-token": JWT,
    "winnow-key": "wnw_abcdef0123456789",
    "provider-key": "sk-ant-api03-" + "Ab1" * 20,
    "gitlab-token": "glpat-" + "Ab1_" * 6,
    "npm-tokens": "npm_" + "Ab1" * 12,
}


@pytest.fixture(scope="module")
def masker():
    return Masker()


def one(masker: Masker, text: str) -> str:
    return masker.mask([text])[0]


@pytest.mark.parametrize("kind", [k for k in SECRETS if k != "npm-tokens"])
def test_secrets_become_their_kind(masker, kind):
    """A secret is masked whole, with its kind, and the words around it stay."""
    assert one(masker, f"before {SECRETS[kind]} after") == f"before [masked:{kind}] after"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://joe:hunter2hunter@host/x", "https://joe:[masked:basic-auth-credentials]@host/x"),
        ('password = "hunter2-secret"', 'password = "[masked:secret-keyword]"'),
        ('{"api_key": "0d9f8a7b6c", "x": 1}', '{"api_key": "[masked:secret-keyword]", "x": 1}'),
        ("Authorization: Bearer abcdefghij0123456789xyz", "Authorization: Bearer [masked:bearer-token]"),
        ("//registry/:_authToken=" + SECRETS["npm-tokens"], "//registry/:_authToken=[masked:npm-tokens]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY----- x", "[masked:private-key] x"),
        ("cut: -----BEGIN PRIVATE KEY-----\nMIIE", "cut: [masked:private-key]"),
    ],
)
def test_secrets_beside_their_names(masker, text, masked):
    """The value is masked, its name stays."""
    assert one(masker, text) == masked


def test_a_secret_is_masked_in_every_text(masker):
    """What one text gives away by its name is masked where another text has it without."""
    found = masker.mask(['db_password = "tr0ub4dor-3"', "- the password is tr0ub4dor-3"])
    assert found == ['db_password = "[masked:secret-keyword]"', "- the password is [masked:secret-keyword]"]


def test_image_bytes_are_left_out(masker):
    """Data URLs, long base64 and base64 in lines are left out; what stands around them stays."""
    data = base64.b64encode(bytes(range(256)) * 4).decode()
    lines = "\n".join(data[i : i + 76] for i in range(0, len(data), 76))
    assert one(masker, f'<img src="data:image/png;base64,{data}"> x') == '<img src="[masked:data-url]"> x'
    assert one(masker, f'{{"data": "{data}"}}') == '{"data": "[masked:base64]"}'
    assert one(masker, f"head\n{lines}\ntail") == "head\n[masked:base64]\ntail"


@pytest.mark.parametrize(
    "text",
    [
        "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad fixes #12", "id 6f0e0b9a-5f0c-5a3e-9d6e-3d1c7a9f4b21", "127.0.0.1 and 8.8.8.8",
        "0x" + "CE3205AEFBF19FB8" * 20, "basic economy", "a bearer of news", "key: value", "password reset was sent", "x" * 5000,
        "HAT136 costs $152", "https://host/path?q=1", "sk-learn is a library", "task-1234567890abcdef",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(masker, text):
    """Hashes, ids, numbers, addresses and words are what entries are about."""
    assert one(masker, text) == text


def test_false_masks_on_the_development_set(masker):
    """Of all texts of the labelled boundaries, which hold no secrets, one is masked: base64 of 900 characters in a shell command."""
    lines = shared_data("sourcebench", "dev.jsonl").read_text().splitlines()
    changed = total = 0
    for line in lines[::3]:
        row = json.loads(line)
        texts = [row["task"], row["previous_summary"] or "", row["candidate_summary"]]
        texts += [message["text"] for message in row["history"] + row["retained"]]
        changed += sum(before != after for before, after in zip(texts, masker.mask(texts), strict=True))
        total += len(texts)
    assert total > 200
    assert changed <= 1


@pytest.mark.parametrize(
    "unit",
    [
        "://",
        "://a:",
        "eyJ",
        "password='",
        "password",
        "pwd",
        "A1b",
        "AKIA",
        "sk-",
        "key: ",
        "data:",
        "-----BEGIN PRIVATE KEY",
        "xoxa-1-",
        "a" * 65,
    ],
)
def test_time_is_linear(masker, unit):
    """Text that is made against the expressions takes time in proportion to its length."""

    def took(length: int) -> float:
        text = (unit * length)[:length]
        began = time.process_time()
        masker.mask([text])
        return time.process_time() - began

    assert took(16_000) < 12 * took(4_000) + 0.1


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(max_size=200), max_size=5))
def test_masking_is_deterministic_and_keeps_the_number_of_texts(texts):
    """Any texts come out as many, the same every time."""
    masker = Masker()
    first = masker.mask(texts)
    assert len(first) == len(texts)
    assert masker.mask(texts) == first
