"""Token buckets: what they let through, what they remember, whom they take for one sender."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.problems import ProblemError
from services.gateway.quotas import Buckets, Quotas, neighbourhood


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@given(
    st.floats(0.01, 1000),
    st.integers(1, 50),
    st.lists(st.tuples(st.floats(0, 30), st.sampled_from("ab")), max_size=200),
)
def test_no_window_lets_more_through_than_burst_and_rate(rate, burst, arrivals):
    """Between any two moments a name gets at most the burst and what the rate gives in that time; each wait that is told is enough."""
    clock = Clock()
    buckets = Buckets(rate_per_s=rate, burst=burst, clock=clock)
    taken = {"a": [], "b": []}
    for pause, name in arrivals:
        clock.at += pause
        left = buckets.take(name)
        assert 0 <= left.remaining <= left.limit == burst
        if left.wait_s == 0:
            taken[name].append(clock.at)
        else:
            now = clock.at
            clock.at += left.wait_s
            assert buckets.look(name).wait_s == 0
            clock.at = now
    for times in taken.values():
        for i in range(len(times)):
            for j in range(i, len(times)):
                assert j - i + 1 <= burst + rate * (times[j] - times[i]) + 1e-6


def test_memory_is_bounded():
    """However many names there are, only some are remembered, and the one that was used last is among them."""
    buckets = Buckets(rate_per_s=0.001, burst=2, clock=Clock(), most=10)
    for i in range(1000):
        buckets.take(f"name {i}")
    assert len(buckets) == 10
    assert buckets.look("name 999").remaining == 1


def test_a_refusal_costs_nothing():
    """Who asks while his bucket is empty is not put off for longer by that."""
    clock = Clock()
    buckets = Buckets(rate_per_s=1, burst=1, clock=clock)
    assert buckets.take("a").wait_s == 0
    for _ in range(100):
        assert buckets.take("a").wait_s == 1
    clock.at += 1
    assert buckets.take("a").wait_s == 0


def test_zero_is_no_limit():
    """Without a rate nothing is counted and nothing refused."""
    quotas = Quotas(rate_per_s=0, burst=1, failures_per_minute=0)
    for _ in range(10_000):
        assert quotas.spend("key") is None
        quotas.failed("192.0.2.1")
        quotas.refuse("192.0.2.1")


def test_an_address_that_fails_is_refused_and_then_forgiven():
    """After its failures an address is refused with the time to wait; others are not, and neither is it when the time has passed."""
    clock = Clock()
    quotas = Quotas(rate_per_s=1, burst=1, failures_per_minute=30, clock=clock)
    for _ in range(30):
        quotas.refuse("2001:db8::1")
        quotas.failed("2001:db8::1")
    with pytest.raises(ProblemError) as refused:
        quotas.refuse("2001:db8::ffff:2")
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "2")
    quotas.refuse("2001:db8:0:1::1")
    clock.at += 2
    quotas.refuse("2001:db8::1")


@given(st.ip_addresses(v=6))
def test_one_customer_of_ipv6_is_one_sender(address):
    """All addresses of a /64 are one, but IPv4 in IPv6 clothes is each its own."""
    other = ipaddress.IPv6Address(int(address) ^ 1)
    same = neighbourhood(str(address)) == neighbourhood(str(other))
    assert same == (address.ipv4_mapped is None)
    assert neighbourhood("::ffff:192.0.2.7") == neighbourhood("192.0.2.7")


@given(st.text(max_size=200))
def test_what_is_no_address_is_a_short_name(text):
    """A path of a socket or nonsense stands for itself and stays small."""
    assert len(neighbourhood(text)) <= 64
