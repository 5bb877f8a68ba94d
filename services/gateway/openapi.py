"""The description of the API: what the routes say, plus request bodies, examples and problem documents."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from services.gateway.keys import require
from winnow.client.api import PROBLEM_TYPE, EraseRequest, OperatorRequest, Problem, ProblemReason, RecoveryRequest
from winnow.contracts.access import Right, Role
from winnow.contracts.events import Candidate, Messages, Observation, RuntimeEvent

#: Version of the API; the `v1` of its paths.
VERSION = "1.0.0"
_ABOUT = """Winnow checks each entry of an agent's compaction summary for a source and gives back the summary without the entries that have
none. Submit a boundary, wait for its result, read its history, recover the originals. Errors are problem documents (RFC 9457) with a
`reason` code; they never quote content. Kafka runtimes use the topics of the AsyncAPI document instead."""
_TAGS = {
    "boundaries": "Compaction boundaries and what became of their entries.",
    "originals": "Exact bytes: what was pruned or replaced is recovered here; large messages are uploaded here.",
    "recovery": "What an agent asks back: exact bytes by handle, search of the history, what was pruned of a run.",
    "reports": "What runtimes and graders tell.",
    "operations": "For operators: hold, release, erase, replay; for auditors: the trail of it.",
    "status": "Health and metrics; no key needed.",
}
_EXAMPLES: dict[str, Any] = {
    "Candidate": {
        "run": "session-17",
        "index": 3,
        "mode": "enforce",
        "host": "openclaw",
        "task": "Move the auth module to async.",
        "history": [
            {"i": 0, "kind": "action", "text": '[tool call] shell: {"cmd": "pytest -k session"}'},
            {"i": 1, "kind": "environment", "tool": "shell", "text": "14 passed"},
        ],
        "candidate": "## Decisions\n- 14 session tests pass\n- Port 3000 is taken\n",
    },
    "RuntimeEvent": {"run": "session-17", "kind": "run_ended"},
    "RecoveryRequest": {"handle": "kZ3v9QmX1cT7yB2nR5wE8uJ4aH6sD0fG.e5", "run": "session-17"},
    "Observation": {
        "event_id": "0b8f6d2e-6c1b-4a55-9f0e-5b8f2f4f8a10",
        "stream": "decision-equivalence",
        "unit": "session-17",
        "sampled": {"probability": 0.1, "at": "2026-11-30T12:00:00Z"},
    },
    "OperatorRequest": {"because": "the tool that returned errors is mended"},
    "EraseRequest": {"run": "session-17", "because": "its user asked for it"},
    "Messages": {"history": [{"i": 0, "kind": "environment", "tool": "shell", "text": "14 passed"}]},
}
_BODIES = {
    ("/v1/boundaries", "post"): ("Candidate", "The boundary; `fleet` may be left out."),
    ("/v1/runtime-events", "post"): ("RuntimeEvent", "The event; `fleet`, `event_id` and `at` may be left out."),
    ("/v1/hold", "post"): ("OperatorRequest", "Why."),
    ("/v1/release", "post"): ("OperatorRequest", "Why."),
    ("/v1/erasures", "post"): ("EraseRequest", "The run, and why."),
    ("/v1/dead-letters/{letter_id}/replay", "post"): ("OperatorRequest", "Why."),
    ("/v1/observations", "post"): ("Observation", "The observation; `fleet` may be left out."),
    ("/v1/recoveries", "post"): ("RecoveryRequest", "What is asked back."),
}
#: Fields that the gateway fills in.
_FILLED = {"Candidate": {"fleet", "boundary_id", "candidate_sha256"}, "RuntimeEvent": {"fleet", "event_id", "at"}, "Observation": {"fleet"}}
_R = ProblemReason
_COMMON = {
    "401": (_R.UNAUTHORISED,),
    "403": (_R.FORBIDDEN, _R.OTHER_FLEET),
    "422": (_R.INVALID,),
    "429": (_R.RATE_LIMITED,),
    "500": (_R.INTERNAL,),
    "503": (_R.UNAVAILABLE, _R.OVERLOADED),
}
_UPLOAD: dict[str, tuple[ProblemReason, ...]] = {"408": (_R.BODY_TIMEOUT,), "413": (_R.TOO_LARGE,), "415": (_R.UNSUPPORTED_ENCODING,)}
_PROBLEMS: dict[tuple[str, str], dict[str, tuple[ProblemReason, ...]]] = {
    ("/v1/boundaries", "post"): {
        **_UPLOAD,
        "409": (_R.ID_CONFLICT,),
        "422": (_R.INVALID, _R.HASH_MISMATCH, _R.CLAIM_LOST, _R.TOO_LARGE),
        "429": (_R.RATE_LIMITED, _R.OVERLOADED),
    },
    ("/v1/boundaries", "get"): {"422": (_R.INVALID, _R.BAD_CURSOR)},
    ("/v1/runs", "get"): {"422": (_R.INVALID, _R.BAD_CURSOR)},
    ("/v1/boundaries/{boundary_id}", "get"): {"404": (_R.NOT_FOUND,)},
    ("/v1/boundaries/{boundary_id}/entries", "get"): {"404": (_R.NOT_FOUND,)},
    ("/v1/originals/{handle}", "get"): {"404": (_R.NOT_FOUND,), "410": (_R.GONE,)},
    ("/v1/originals", "post"): _UPLOAD,
    ("/v1/recoveries", "post"): {**_UPLOAD, "404": (_R.NOT_FOUND,), "410": (_R.GONE,)},
    ("/v1/search", "get"): {"404": (_R.NOT_FOUND,), "422": (_R.INVALID, _R.BAD_CURSOR)},
    ("/v1/pruned-entries", "get"): {"404": (_R.NOT_FOUND,), "422": (_R.INVALID, _R.BAD_CURSOR)},
    ("/v1/runtime-events", "post"): _UPLOAD,
    ("/v1/observations", "post"): _UPLOAD,
    ("/v1/hold", "post"): _UPLOAD,
    ("/v1/release", "post"): _UPLOAD,
    ("/v1/erasures", "post"): _UPLOAD,
    ("/v1/dead-letters/{letter_id}/replay", "post"): {**_UPLOAD, "404": (_R.NOT_FOUND,)},
}
#: What is left of the key's quota; absent where there is no limit.
_QUOTA = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
_HEADERS: dict[str, Any] = {
    name: {"description": text, "schema": {"type": "integer", "minimum": 0}}
    for name, text in {
        "Retry-After": "Seconds to wait before the next try.",
        "RateLimit-Limit": "Requests that the key may send at once after a quiet time, to this process.",
        "RateLimit-Remaining": "Requests that it may send at once now.",
        "RateLimit-Reset": "Seconds until all of them are there again.",
    }.items()
}


def describe(app: FastAPI) -> None:
    """Let `app` give the whole description at /openapi.json."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # the way that the framework documents


def _document(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title=app.title,
        version=VERSION,
        summary="Source-judged compaction at the boundary.",
        description=_ABOUT,
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in _TAGS.items()],
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    schemas = made["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):  # the framework's own errors, which are never sent
        schemas.pop(name, None)
    _, more = models_json_schema(
        [
            (model, "validation")
            for model in (Candidate, RuntimeEvent, Observation, Messages, RecoveryRequest, OperatorRequest, EraseRequest)
        ]
        + [(Problem, "serialization")],
        ref_template="#/components/schemas/{model}",
    )
    for name, schema in more["$defs"].items():
        schemas.setdefault(name, schema)
    for name, filled in _FILLED.items():
        schemas[name]["required"] = [field for field in schemas[name]["required"] if field not in filled]
    schemas["Problem"]["properties"]["reason"]["enum"] = [reason.value for reason in ProblemReason]
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            _complete(path, method, operation)
    made["components"]["headers"] = _HEADERS
    for route in app.routes:
        if isinstance(route, APIRoute) and (right := _right(route)) is not None:
            roles = [role.value for role in Role if role.may(right)]
            for method in route.methods or ():
                operation = made["paths"][route.path][method.lower()]
                operation["description"] += f"\n\nNeeds a key of the role {' or '.join(f'`{role}`' for role in roles)}."
                operation["x-winnow-roles"] = roles
    return made


def _right(route: APIRoute) -> Right | None:
    """What a key must be allowed for `route`; None: no key is needed."""
    asked = [found.call.right for found in route.dependant.dependencies if isinstance(found.call, require)]
    return asked[0] if asked else None


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    """Body, example and problems of one operation."""
    if (path, method) in _BODIES:
        name, text = _BODIES[path, method]
        operation["requestBody"] = _body(name, text)
    if (path, method) == ("/v1/originals", "post"):
        operation["requestBody"] = _body("Messages", "Messages as JSON, or bytes.")
        operation["requestBody"]["content"]["application/octet-stream"] = {"schema": {"type": "string", "format": "binary"}}
    if not path.startswith("/v1/"):
        return
    for status, reasons in sorted({**_COMMON, **_PROBLEMS.get((path, method), {})}.items()):
        operation["responses"][status] = {
            "description": "Problem with the reason " + " or ".join(f"`{reason}`" for reason in reasons) + ".",
            "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        if status in {"429", "503"}:
            operation["responses"][status]["headers"] = _refer("Retry-After")
    for status, response in operation["responses"].items():
        if status not in {"401", "500"}:  # of a key that is known, and of an answer that was made on purpose
            response["headers"] = response.get("headers", {}) | _refer(*_QUOTA)


def _refer(*names: str) -> dict[str, Any]:
    """References to header fields."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _body(name: str, text: str) -> dict[str, Any]:
    return {
        "required": True,
        "description": text,
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}, "example": _EXAMPLES[name]}},
    }
