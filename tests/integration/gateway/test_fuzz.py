"""The HTTP surface, asked whatever its own description allows, and what it does not, by a generator."""

import asyncio
import threading
import warnings

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

#: Requests of one operation, by each of the two ways to make them up. Altogether they take some fifteen seconds of a processor.
EXAMPLES = 5
#: What the whole may take before it counts as a hang.
MOST_S = 240


@pytest.mark.timeout(MOST_S + 30)
@pytest.mark.parametrize("gateway_settings", [{"gateway_auth_failures_per_minute": 0, "gateway_wait_cap_ms": 20}])
async def test_no_request_breaks_the_gateway(stage):
    """Valid and invalid requests to every operation: never a server error, always a documented status and body, and it lives on."""
    secret, _ = await stage.new_key(role="operator")
    description = (await stage.http.get("/openapi.json")).json()
    stopped = threading.Event()
    work = asyncio.create_task(asyncio.to_thread(_ask_everything, description, stage.service.url, secret, stopped))
    try:
        async with asyncio.timeout(MOST_S):
            asked = await work
    finally:
        stopped.set()
        await asyncio.gather(work, return_exceptions=True)
    paths = {path for path in description["paths"] if path.startswith("/v1/")}
    assert set(asked) == paths
    assert all(count >= EXAMPLES for count in asked.values()), asked
    assert (await stage.http.get("/readyz")).status_code == 200
    await stage.submit(run="afterwards")


def _ask_everything(description: dict, url: str, secret: str, stopped: threading.Event) -> dict[str, int]:
    """Ask every operation of the API; the number of requests by path."""
    asked: dict[str, int] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that make up and send requests
        schema = schemathesis.openapi.from_dict(description)
        for found in schema.get_all_operations():
            operation = found.ok()
            if not operation.path.startswith("/v1/"):
                continue
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                try:
                    strategy = operation.as_strategy(generation_mode=mode)
                    _ask(strategy, url, secret, stopped, asked)
                except schemathesis.errors.SchemathesisError:
                    continue  # no wrong request can be made up for it
    return asked


def _ask(strategy, url: str, secret: str, stopped: threading.Event, asked: dict[str, int]) -> None:
    """Send what `strategy` makes up, and check each answer against the description."""

    @seed(6)
    @settings(
        max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=strategy)
    def ask(case) -> None:
        assert not stopped.is_set()
        # Of a made-up fleet everything would be refused, and nothing behind that be asked; `test_access` has those.
        kept = {name: value for name, value in (case.headers or {}).items() if name.lower() != "winnow-fleet"}
        case.headers = {**kept, "authorization": f"Bearer {secret}"}
        answer = case.call(base_url=url, timeout=20)
        asked[case.operation.path] = asked.get(case.operation.path, 0) + 1
        case.validate_response(answer, checks=[not_a_server_error, response_schema_conformance])
        _conforms(case, answer)

    ask()


def _conforms(case, answer) -> None:
    """The status is one of the description's, and a problem is a problem document with a reason."""
    documented = case.operation.definition.raw["responses"]
    assert str(answer.status_code) in documented, (case.operation.label, answer.status_code, answer.text[:300])
    if answer.status_code >= 400:
        assert answer.headers["content-type"][0] == "application/problem+json"
        assert answer.json()["reason"]
