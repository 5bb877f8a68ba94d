"""Quotas over HTTP: of keys, and of addresses whose requests have none that works."""

import pytest

GUESS = "wnw_" + "A" * 43


@pytest.mark.parametrize("gateway_settings", [{"gateway_rate_per_s": 0.01, "gateway_rate_burst": 3}])
async def test_a_key_has_a_quota(stage):
    """Answers tell what is left; beyond it 429 says how long to wait; another key of the same fleet has its own."""
    left = []
    for _ in range(3):
        answer = await stage.http.get("/v1/runs")
        assert answer.status_code == 200
        assert answer.headers["ratelimit-limit"] == "3"
        left.append(int(answer.headers["ratelimit-remaining"]))
    assert left == [2, 1, 0]
    answer = await stage.http.get("/v1/runs")
    assert (answer.status_code, answer.json()["reason"]) == (429, "rate_limited")
    assert answer.headers["content-type"] == "application/problem+json"
    assert 1 <= int(answer.headers["retry-after"]) <= 100
    assert answer.headers["ratelimit-remaining"] == "0"
    assert (await stage.http.get("/readyz")).status_code == 200
    secret, _ = await stage.new_key()
    async with stage.client(secret) as other:
        assert (await other.get("/v1/runs")).status_code == 200


@pytest.mark.parametrize("gateway_settings", [{"gateway_auth_failures_per_minute": 5, "gateway_key_cache_s": 0}])
async def test_an_address_that_guesses_is_refused(stage):
    """Guesses end in 429 without a look at the database; a key that worked before still does, from the same address."""
    assert (await stage.http.get("/v1/runs")).status_code == 200
    async with stage.client(None) as http:
        for i in range(5):
            headers = {"authorization": f"Bearer {GUESS[:-1]}{i}"} if i else {}
            assert (await http.get("/v1/runs", headers=headers)).status_code == 401
        answer = await http.get("/v1/runs", headers={"authorization": f"Bearer {GUESS}"})
    assert (answer.status_code, answer.json()["reason"]) == (429, "rate_limited")
    assert 1 <= int(answer.headers["retry-after"]) <= 12
    assert (await stage.http.get("/v1/runs")).status_code == 200
    secret, _ = await stage.new_key()
    async with stage.client(secret) as fresh:
        assert (await fresh.get("/v1/runs")).status_code == 429


@pytest.mark.parametrize("gateway_settings", [{"gateway_auth_failures_per_minute": 3}])
async def test_the_consoles_sign_in_counts_too(stage):
    """Guesses in the form are counted with those of the API; a key that works still signs in where it worked before."""
    assert (await stage.http.get("/v1/runs")).status_code == 200
    async with stage.client(None) as http:
        answers = [await http.post("/console/sign-in", data={"key": f"{GUESS[:-1]}{i}"}) for i in range(4)]
        assert [answer.status_code for answer in answers] == [401, 401, 401, 429]
        assert (await http.get("/v1/runs")).status_code == 429
        assert (await http.post("/console/sign-in", data={"key": stage.key})).status_code == 303
