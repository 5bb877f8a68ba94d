"""Boundaries in a file: one JSON object a line, as in labelled data sets, or a candidate event."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, ValidationError

from winnow.contracts.envelope import explain
from winnow.contracts.errors import Permanent
from winnow.contracts.events import Candidate, Message, Model
from winnow.contracts.vocabulary import Mode, Rules

#: Bytes. A longer line is refused before it is parsed: 64 MiB of messages is the most that Winnow stores.
LINE_BYTES = 80 * 1024 * 1024


class BadLine(Permanent):
    """A line is no boundary."""


class BoundaryLine(Model):
    """What a line says. Other fields (labels, origin) are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    id: str = Field(validation_alias=AliasChoices("id", "boundary_id"), description="Name of the boundary, given back with its result.")
    run: str | None = None
    index: int = Field(default=1, ge=1, validation_alias=AliasChoices("index", "boundary"))
    host: str | None = None
    profile: str | None = None
    task: Annotated[str, BeforeValidator(lambda v: "" if v is None else v)] = ""
    previous_summary: str | None = None
    history: tuple[Message, ...] = ()
    retained: tuple[Message, ...] = ()
    candidate: str = Field(validation_alias=AliasChoices("candidate_summary", "candidate"))
    pins: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    user_turns_survive: bool | None = None

    def event(self, *, fleet: str, mode: Mode, rules: Rules = Rules.WINNOW) -> Candidate:
        """The candidate event of this boundary. Raise `BadLine` where a name is not one that an event may carry."""
        try:
            return Candidate.model_validate(
                {
                    "fleet": fleet,
                    "run": self.run or self.id,
                    "index": self.index,
                    "mode": mode,
                    "rules": rules,
                    **self.model_dump(include={"host", "profile", "task", "previous_summary", "history", "retained", "candidate", "pins"}),
                    "user_turns_survive": self.user_turns_survive,
                }
            )
        except ValidationError as exc:
            raise BadLine(explain(exc)) from None


def parse_line(data: bytes) -> BoundaryLine:
    """One line. Raise `BadLine`, whose text names fields and quotes no content."""
    if len(data) > LINE_BYTES:
        msg = f"longer than {LINE_BYTES // 2**20} MiB"
        raise BadLine(msg)
    try:
        return BoundaryLine.model_validate_json(data)
    except ValidationError as exc:
        raise BadLine(explain(exc)) from None


def read_lines(file: IO[bytes]) -> Iterator[tuple[int, BoundaryLine | BadLine]]:
    """Number (from 1) and content of each line that is not blank; a bad one is given as the error, so that the rest can go on."""
    number = 0
    while data := file.readline(LINE_BYTES + 1):
        number += 1
        whole = data
        while not data.endswith(b"\n") and len(data) > LINE_BYTES:  # the rest of a line that is refused: read past it, keep none of it
            data = file.readline(LINE_BYTES + 1)
        if number == 1:
            whole = whole.removeprefix(b"\xef\xbb\xbf")
        if not whole.strip():
            continue
        try:
            yield number, parse_line(whole)
        except BadLine as exc:
            yield number, exc


@contextmanager
def source_of(name: str) -> Iterator[IO[bytes]]:
    """The file of boundaries, as bytes; standard input for `-`. Raise `Permanent` where it cannot be read."""
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115  closed below; opened here so that only its own errors are caught
    except (OSError, ValueError) as exc:
        msg = f"{name}: {getattr(exc, 'strerror', None) or exc}"
        raise Permanent(msg) from None
    with file:
        yield file
