"""Webhook signatures: made here, checked by whoever gets the body."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.contracts.signing import TOLERANCE_S, genuine, signature

SECRET = "a secret of the webhook"
NOW = 1_796_000_000


@given(st.binary(max_size=200), st.text(max_size=50))
def test_what_was_signed_is_genuine(body, secret):
    """The body that was signed is genuine with its secret, also while it is exchanged for another, and with no other."""
    signed = signature(secret, NOW, body)
    said = {"signed": signed, "timestamp": str(NOW), "body": body, "now": float(NOW)}
    assert genuine(secret, **said)
    assert genuine(["another one", secret], **said)
    assert not genuine(secret + "x", **said)
    assert not genuine([], **said)


@pytest.mark.parametrize(
    "changes",
    [
        {"body": b"{} "}, {"timestamp": str(NOW + 1)}, {"now": NOW + TOLERANCE_S + 1}, {"now": NOW - TOLERANCE_S - 1}, {"signed": ""},
        {"signed": "v1="}, {"signed": "v2=" + signature(SECRET, NOW, b"{}")[3:]}, {"signed": "\ud800"}, {"timestamp": ""},
        {"timestamp": "-1"}, {"timestamp": "1e9"}, {"timestamp": "\u0661\u0662"}, {"timestamp": "9" * 1_000_000}, {"timestamp": f" {NOW}"},
    ],
)  # fmt: skip
def test_anything_else_is_not(changes):
    """Another body, another time, an old delivery and what a stranger makes up are refused, and nothing raises."""
    said = {"signed": signature(SECRET, NOW, b"{}"), "timestamp": str(NOW), "body": b"{}", "now": float(NOW)}
    assert genuine(SECRET, **said)
    assert not genuine(SECRET, **said | changes)
