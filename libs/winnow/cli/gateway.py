"""The gateway's HTTP API as the commands use it: synchronous, one answer at a time, errors as ours."""

import time
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote
from uuid import UUID

import httpx
from pydantic import ValidationError

from winnow.cli.connection import Unreachable
from winnow.client.api import BoundaryPage, BoundaryView, EntryList, Problem, RunPage
from winnow.contracts import limits
from winnow.contracts.errors import Conflict, Gone, NotFound, Permanent, TooLarge
from winnow.contracts.events import Candidate, ClaimCheck, Model

M = TypeVar("M", bound=Model)

#: Seconds that one request may take beyond the time that the gateway was asked to wait.
SLACK_S = 15.0
#: Seconds that one request asks the gateway to wait at most; proxies in between give up after 30 to 60.
WAIT_S = 20.0

_PERMANENT: dict[int, type[Permanent]] = {404: NotFound, 409: Conflict, 410: Gone, 413: TooLarge}
_LATER = frozenset({408, 425, 429, 500, 502, 503, 504})
_CLIENT_ERROR = 400


class Gateway:
    """One gateway, asked with one key. Use as a context manager."""

    def __init__(self, url: str, key: str, *, transport: httpx.BaseTransport | None = None) -> None:
        """`url` is the gateway's base URL, `key` the API key of a fleet. `transport` replaces the network.

        Raise `Permanent` where either cannot be one.
        """
        if not (key.isascii() and key.isprintable()):
            raise Permanent("WINNOW_API_KEY holds characters that no key has; was it pasted with a line end?")
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL:
            parsed = httpx.URL("")
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise Permanent("WINNOW_GATEWAY_URL is not the URL of a gateway; it looks like http://127.0.0.1:8484")
        self._client = httpx.Client(base_url=parsed, headers={"authorization": f"Bearer {key}"}, timeout=SLACK_S, transport=transport)

    def __enter__(self) -> Self:
        """Keep its connections open."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close its connections."""
        self._client.close()

    def runs(self, *, cursor: str | None = None, limit: int = 50) -> RunPage:
        """Runs of the key's fleet, the most recently active first."""
        return self._ask(RunPage, "GET", "/v1/runs", params=_given(cursor=cursor, limit=limit))

    def boundaries(self, run: str, *, cursor: str | None = None, limit: int = 50) -> BoundaryPage:
        """Boundaries of a run."""
        return self._ask(BoundaryPage, "GET", "/v1/boundaries", params=_given(run=run, cursor=cursor, limit=limit))

    def boundary(self, boundary_id: UUID, *, wait_s: float = 0.0) -> BoundaryView:
        """One boundary; waits up to `wait_s` seconds for its result. Raise `NotFound`."""
        return self._until_committed(None, boundary_id, wait_s)

    def entries(self, boundary_id: UUID) -> EntryList:
        """All entries of a boundary with score, decision and evidence. Raise `NotFound`."""
        return self._ask(EntryList, "GET", f"/v1/boundaries/{boundary_id}/entries")

    def submit(self, candidate: Candidate, *, wait_s: float) -> BoundaryView:
        """Submit a boundary and wait up to `wait_s` seconds for its result. Raise `Conflict`, `TooLarge` or `Permanent`."""
        return self._until_committed(candidate, candidate.boundary_id, wait_s)

    def original(self, handle: str) -> bytes:
        """The exact bytes of an original. Raise `NotFound` or `Gone`."""
        return self._send("GET", f"/v1/originals/{quote(handle, safe='')}").content

    def _until_committed(self, candidate: Candidate | None, boundary_id: UUID, wait_s: float) -> BoundaryView:
        """Submit where there is something to submit, then ask until there is a result or the time is over."""
        body = None if candidate is None else self._body(candidate)
        until = time.monotonic() + wait_s
        while True:
            wait = max(0.0, min(WAIT_S, until - time.monotonic()))
            request: dict[str, Any] = {"params": {"wait_ms": int(wait * 1000)}, "timeout": wait + SLACK_S}
            if body is None:
                view = self._ask(BoundaryView, "GET", f"/v1/boundaries/{boundary_id}", **request)
            else:
                headers = {"content-type": "application/json"}
                view = self._ask(BoundaryView, "POST", "/v1/boundaries", content=body, headers=headers, **request)
                body, boundary_id = None, view.boundary_id
            if view.result is not None or time.monotonic() >= until:
                return view

    def _body(self, candidate: Candidate) -> bytes:
        """The candidate as it travels: whole, or with its messages stored first and a claim check in their place."""
        body = candidate.model_dump_json().encode()
        if len(body) <= limits.CANDIDATE_BODY_BYTES or candidate.messages is not None:
            return body
        headers = {"content-type": "application/octet-stream"}
        claim = self._ask(ClaimCheck, "POST", "/v1/originals", content=candidate.inline_messages().content(), headers=headers)
        return candidate.model_copy(update={"history": (), "retained": (), "messages": claim}).model_dump_json().encode()

    def _ask(self, model: type[M], method: str, path: str, **request: Any) -> M:  # noqa: ANN401  httpx's own arguments
        """One request and its answer as a value."""
        answer = self._send(method, path, **request)
        try:
            return model.model_validate_json(answer.content)
        except ValidationError:
            msg = f"the answer of {self._client.base_url} is not one of Winnow's gateway; see WINNOW_GATEWAY_URL"
            raise Permanent(msg) from None

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:  # noqa: ANN401  httpx's own arguments
        """One request; anything but a success is raised as the error that it means."""
        try:
            answer = self._client.request(method, path, **request)
        except httpx.TransportError as exc:
            if "CERTIFICATE_VERIFY_FAILED" in str(exc):
                msg = f"the certificate of {self._client.base_url} is not trusted; set SSL_CERT_FILE to the file of its CA"
                raise Permanent(msg) from exc
            msg = f"the gateway at {self._client.base_url} does not answer ({type(exc).__name__}); see whether it runs"
            raise Unreachable(msg) from exc
        if answer.status_code >= _CLIENT_ERROR:
            raise _error(answer)
        return answer


def _given(**params: str | int | None) -> dict[str, str | int]:
    """The parameters that have a value."""
    return {name: value for name, value in params.items() if value is not None}


def _error(answer: httpx.Response) -> Permanent | Unreachable:
    """The error that an answer stands for."""
    try:
        problem = Problem.model_validate_json(answer.content)
        text, reason = f"{problem.title}: {problem.detail}", problem.reason
    except ValidationError:
        text, reason = f"the gateway answered {answer.status_code}", "invalid"
    if answer.status_code in _LATER:
        return Unreachable(text)
    return _PERMANENT.get(answer.status_code, Permanent)(text, reason=reason)
