"""The HTTP API as others rely on it: its description, its reasons, and what the client makes of its answers."""

import json
from collections.abc import Iterator

import asyncpg
import httpx
import pytest
from sqlalchemy.exc import DBAPIError

from services.gateway.api import make_api
from services.gateway.problems import KINDS, ProblemError, document, translate
from tests.harness import REPOSITORY
from winnow.client import Because, Unheard
from winnow.client.api import PROBLEM_TYPE, EraseRequest, OperatorRequest, Problem, ProblemReason, RecoveryRequest, Status
from winnow.client.http import Answer, _because
from winnow.contracts.errors import Conflict, Gone, HashMismatch, NotFound, Permanent, Retryable, TooLarge
from winnow.contracts.events import Candidate, Messages, Observation, RuntimeEvent

SNAPSHOT = REPOSITORY / "docs" / "openapi.json"

#: Paths and reasons of v1 so far. A release may add to them and never take one away.
PATHS = {
    ("post", "/v1/boundaries"),
    ("get", "/v1/boundaries"),
    ("get", "/v1/boundaries/{boundary_id}"),
    ("get", "/v1/boundaries/{boundary_id}/entries"),
    ("get", "/v1/runs"),
    ("get", "/v1/originals/{handle}"),
    ("post", "/v1/originals"),
    ("post", "/v1/runtime-events"),
    ("post", "/v1/observations"),
    ("post", "/v1/recoveries"),
    ("get", "/v1/search"),
    ("get", "/v1/pruned-entries"),
    ("post", "/v1/hold"),
    ("post", "/v1/release"),
    ("post", "/v1/erasures"),
    ("get", "/v1/dead-letters"),
    ("post", "/v1/dead-letters/{letter_id}/replay"),
    ("get", "/v1/audit"),
    ("get", "/livez"),
    ("get", "/readyz"),
    ("get", "/metrics"),
}
REASONS = {
    "invalid", "hash_mismatch", "claim_lost", "too_large", "id_conflict", "bad_cursor", "unauthorised", "forbidden", "other_fleet",
    "not_found", "gone", "method_not_allowed", "unsupported_encoding", "body_timeout", "rate_limited", "overloaded", "unavailable",
    "internal",
}  # fmt: skip


@pytest.fixture(scope="module")
def api() -> dict:
    """The description that the gateway gives."""
    return make_api().openapi()


def _operations(api: dict) -> Iterator[tuple[str, str, dict]]:
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            yield method, path, operation


def _refs(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from _refs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _refs(inner)


def test_the_committed_description_is_current(api):
    """docs/openapi.json is what the code says."""
    text = json.dumps(api, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    assert SNAPSHOT.read_text() == text, "run: python -m services.gateway.api > docs/openapi.json"


def test_v1_only_grows(api):
    """No path, reason or status of a boundary that somebody relies on has gone."""
    assert {(method, path) for method, path, _ in _operations(api)} >= PATHS
    assert {reason.value for reason in ProblemReason} >= REASONS
    assert {status.value for status in Status} >= {"received", "evidence", "scored", "committed"}


def test_every_reference_leads_somewhere(api):
    """All schemas that the description refers to are in it."""
    names = {f"#/components/{kind}/{name}" for kind, named in api["components"].items() for name in named}
    assert set(_refs(api)) <= names


def test_every_operation_is_described(api):
    """Each has a summary, a description, a key where one is needed, and its problems in their own media type."""
    for method, path, operation in _operations(api):
        assert operation["summary"], path
        assert operation["description"], path
        if not path.startswith("/v1/"):
            continue
        assert operation["security"] == [{"ApiKey": []}], path
        assert {"401", "403", "422", "500", "503"} <= set(operation["responses"]), path
        for status, response in operation["responses"].items():
            if status >= "400":
                assert list(response["content"]) == [PROBLEM_TYPE], (path, status)
        if method == "post":
            assert {"408", "413", "415"} <= set(operation["responses"]), path
            assert operation["requestBody"]["description"], path


def test_every_field_is_described(api):
    """No property of a value that the API takes or gives is without words."""
    own = {
        "BoundaryView",
        "BoundaryPage",
        "RunView",
        "RunPage",
        "EntryView",
        "EntryList",
        "PassageView",
        "Accepted",
        "Problem",
        "ClaimCheck",
        "RecoveryRequest",
        "SearchHit",
        "SearchPage",
        "PrunedEntry",
        "PrunedPage",
    }
    bare = [
        f"{name}.{field}"
        for name in own | {"Candidate", "Message"}
        for field, schema in api["components"]["schemas"][name]["properties"].items()
        if "description" not in schema and "$ref" not in schema  # a reference may leave the words to what it names
    ]
    assert bare == []


def test_documented_problems_have_the_status_of_their_reason(api):
    """What the description says of a status is what the gateway answers with."""
    for _, path, operation in _operations(api):
        for status, response in operation["responses"].items():
            if "reason `" in response["description"]:
                reasons = response["description"].split("`")[1::2]
                allowed = {KINDS[ProblemReason(r)][0] for r in reasons} | ({503} if "overloaded" in reasons else set())
                assert int(status) in allowed | ({413, 422} if "too_large" in reasons else set()), (path, status)


def test_the_examples_are_valid(api):
    """Whoever copies an example gets what it promises."""
    models = {
        "Candidate": Candidate, "RuntimeEvent": RuntimeEvent, "Observation": Observation, "Messages": Messages,
        "RecoveryRequest": RecoveryRequest, "OperatorRequest": OperatorRequest, "EraseRequest": EraseRequest,
    }  # fmt: skip
    filled = {"fleet": "default", "event_id": "0b8f6d2e-6c1b-4a55-9f0e-5b8f2f4f8a10", "at": "2026-11-30T00:00:00Z"}
    seen = set()
    for _, _, operation in _operations(api):
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if content is not None:
            name = content["schema"]["$ref"].rsplit("/", 1)[1]
            models[name].model_validate_json(json.dumps(filled | content["example"]))
            assert set(api["components"]["schemas"][name].get("required", ())) <= set(content["example"]), name
            seen.add(name)
    assert seen == set(models)


@pytest.mark.parametrize("reason", list(ProblemReason))
def test_the_client_understands_every_problem(reason):
    """Each reason leads the client to a retry, a conflict, or a code of its own; none is an answer that it cannot read."""
    response = document(ProblemError(reason, "x"), "id")
    assert Problem.model_validate_json(response.body).reason == reason
    answer = Answer(status=response.status_code, headers=httpx.Headers(dict(response.headers)), body=response.body, seconds=0)
    try:
        because = _because(answer)
    except Conflict:
        because = Because.ID_CONFLICT
    except Unheard as exc:
        because = exc.because
    # 405 and 410 are never answers to a submission.
    unreadable = {ProblemReason.METHOD_NOT_ALLOWED, ProblemReason.GONE}
    assert (because is Because.INVALID_ANSWER) == (reason in unreadable)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Conflict(), ProblemReason.ID_CONFLICT),
        (TooLarge(), ProblemReason.TOO_LARGE),
        (Gone(), ProblemReason.GONE),
        (NotFound(), ProblemReason.NOT_FOUND),
        (Permanent("x"), ProblemReason.INVALID),
        (Retryable(), ProblemReason.UNAVAILABLE),
        (ConnectionRefusedError(), ProblemReason.UNAVAILABLE),
        (TimeoutError(), ProblemReason.UNAVAILABLE),
    ],
)
def test_errors_of_the_inner_layers_have_a_problem(error, reason):
    """What storage and contracts raise is told with the code that fits."""
    problem = translate(error)
    assert problem is not None
    assert problem.reason is reason


@pytest.mark.parametrize("error", [RuntimeError("secret"), KeyError("secret"), HashMismatch()])
def test_defects_are_none(error):
    """What only a defect or a broken disk can cause is not blamed on the caller."""
    assert translate(error) is None


def test_a_full_disk_is_told_apart_from_silence():
    """Whoever waits for a database that cannot write hears what is full; to agents it is a passing error like any other."""
    wrapped = DBAPIError("INSERT", {}, asyncpg.DiskFullError("could not extend file"))
    problem = translate(wrapped)
    assert problem is not None
    assert (problem.reason, "disk of the database is full" in problem.detail) == (ProblemReason.UNAVAILABLE, True)
    assert "could not extend" not in problem.detail
