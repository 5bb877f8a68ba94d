"""Request bodies: read within limits of size, time and memory, then validated with the fleet of the API key."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect

from services.gateway.problems import ProblemError, overloaded
from winnow.client.api import ProblemReason
from winnow.contracts.envelope import explain, reason_of
from winnow.contracts.events import Event

E = TypeVar("E", bound=Event)
M = TypeVar("M", bound=BaseModel)

#: Bytes above which JSON is validated in a thread: 1 MB takes about 10 ms, in which nobody else would be served.
THREAD_BYTES = 256 * 1024


class BodyReader:
    """Reads bodies. One for the whole gateway: it knows how much is in memory."""

    def __init__(self, *, budget_bytes: int, timeout_s: float) -> None:
        """`budget_bytes` of bodies and large answers may be held at once; one body may take `timeout_s` to arrive."""
        self._budget = budget_bytes
        self._timeout_s = timeout_s
        self._held = 0

    @property
    def held(self) -> int:
        """Bytes of bodies in memory."""
        return self._held

    @contextmanager
    def hold(self, size: int) -> Iterator[None]:
        """Count `size` bytes of an answer towards the budget until the block ends. Raise `ProblemError` where it is used up."""
        if self._held + size > self._budget:
            raise overloaded("too many large bodies at once", 1, status=503)
        self._held += size
        try:
            yield
        finally:
            self._held -= size

    @asynccontextmanager
    async def read(self, request: Request, most: int) -> AsyncIterator[bytes]:
        """The body, of at most `most` bytes, which count towards the budget until the block ends. Raise `ProblemError`.

        Nothing is believed of `Content-Length` but that it may be too large; compressed bodies are refused, so none can unfold.
        """
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in {"", "identity"}:
            raise ProblemError(ProblemReason.UNSUPPORTED_ENCODING, "send the body uncompressed", headers={"accept-encoding": "identity"})
        stated = request.headers.get("content-length", "")
        if stated.isascii() and stated.isdigit() and int(stated[:20]) > most:
            raise _too_large(most)
        held = 0
        parts: list[bytes] = []
        try:
            try:
                async with asyncio.timeout(self._timeout_s):
                    async for part in request.stream():
                        held += len(part)
                        self._held += len(part)
                        if held > most:
                            raise _too_large(most)
                        if self._held > self._budget:
                            raise overloaded("too many large bodies at once", 1, status=503)
                        parts.append(part)
            except TimeoutError:
                raise ProblemError(ProblemReason.BODY_TIMEOUT, f"the body took more than {self._timeout_s:g} s") from None
            except ClientDisconnect:
                raise ProblemError(ProblemReason.INVALID, "the client went away", status=400) from None
            yield b"".join(parts)
        finally:
            self._held -= held


def _too_large(most: int) -> ProblemError:
    detail = f"the body has more than {most} bytes; store the messages with POST /v1/originals and send their claim check"
    # The connection stays open: the server throws the rest away. Closed now, the client would see a reset instead of this answer.
    return ProblemError(ProblemReason.TOO_LARGE, detail)


def parse_plain(model: type[M], body: bytes) -> M:
    """The small request in `body`. Raise `ProblemError`."""
    try:
        return model.model_validate_json(body)
    except ValidationError as exc:
        raise ProblemError(ProblemReason.INVALID, explain(exc)[:1000]) from None


async def parse(model: type[E], body: bytes, fleet: str, defaults: Mapping[str, Any] | None = None) -> E:
    """The event in `body`, with `fleet` filled in, and `defaults` where fields are missing. Raise `ProblemError`."""
    if len(body) > THREAD_BYTES:
        return await asyncio.to_thread(_parse, model, body, fleet, defaults or {})
    return _parse(model, body, fleet, defaults or {})


def _parse(model: type[E], body: bytes, fleet: str, defaults: Mapping[str, Any]) -> E:
    try:
        data = from_json(body, allow_inf_nan=False)
    except ValueError:  # its text may quote the input
        raise ProblemError(ProblemReason.INVALID, "the body is not JSON in UTF-8") from None
    if not isinstance(data, dict):
        raise ProblemError(ProblemReason.INVALID, "the body must be a JSON object")
    if data.get("fleet") is None:
        data["fleet"] = fleet
    elif data["fleet"] != fleet:
        raise ProblemError(ProblemReason.OTHER_FLEET, "leave `fleet` out: it is the API key's")
    for name, value in defaults.items():
        if data.get(name) is None:
            data[name] = value
    try:
        return model.model_validate(data)
    except ValidationError as exc:
        raise ProblemError(ProblemReason(reason_of(exc).value), explain(exc)[:1000]) from None
