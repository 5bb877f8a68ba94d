"""Losses in a file, one unit a line: a number, or a JSON object that says what happened. The form is that of the first line."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NoReturn

from winnow.assurance import losses, paired
from winnow.assurance.kinds import Graders, Loss, Order
from winnow.assurance.losses import Outcome
from winnow.assurance.samples import InvalidSample, Sample
from winnow.contracts.errors import Permanent

#: Bytes of one line. A line is one unit: its turns, verdicts or losses by level, never a transcript.
LINE_BYTES: Final = 1024 * 1024
#: Characters of a unit's or level's name.
NAME_CHARS: Final = 1_000


class BadLosses(Permanent):
    """A line of the file is no loss; the text names file and line, and nothing was computed."""


class Form(StrEnum):
    """What the lines say."""

    NUMBERS = "numbers"
    LOSS = "loss"
    TURNS = "losses"
    OUTCOME = "outcome"
    DECISIONS = "decisions"
    VERDICTS = "verdicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The units of a file, in its order."""

    name: str
    form: Form
    #: Name and content of each; numbers are named by their line.
    rows: tuple[tuple[str, Any], ...]
    outcomes: tuple[Outcome, ...]

    def sample(self, loss: Loss, *, graders: Graders, order: Order, registered_n: int | None) -> Sample:
        """The sample of a loss.

        Raises:
            InvalidSample: the lines do not hold what this loss is computed from.
        """
        if self.form is Form.OUTCOME:
            return losses.of_outcomes(loss, self.outcomes)
        if self.form is Form.DECISIONS:
            return self._of_decisions(loss, order, registered_n)
        if self.form is Form.VERDICTS:
            values: list[Any] = [losses.aggregate(verdicts, graders) for _, verdicts in self.rows]
        elif self.form is Form.TURNS:
            values = [_of_turns(loss, turns) for _, turns in self.rows]
        else:
            values = [value for _, value in self.rows]
        return Sample.of(loss.type, values, order=order, registered_n=registered_n)

    def _of_decisions(self, loss: Loss, order: Order, registered_n: int | None) -> Sample:
        """Divergence from (A, B), paired harm from (A, A', B)."""
        rows = [decisions for _, decisions in self.rows]
        if loss is Loss.DECISION_DIVERGENCE:
            return Sample.binary([row[0] != row[-1] for row in rows], order=order, registered_n=registered_n)
        if loss is not Loss.DECISION_HARM:
            raise InvalidSample(f"{loss.value} is not computed from decisions; choose decision_harm or decision_divergence")
        if any(len(row) != 3 for row in rows):  # noqa: PLR2004  A, A', B
            raise InvalidSample("decision_harm needs three decisions a unit: reference, reference again, pruned")
        return Sample.paired(paired.decision_harm([tuple(row) for row in rows]), order=order, registered_n=registered_n)

    def domains(self) -> list[tuple[str, list[Outcome]]]:
        """Outcomes by domain, largest first; empty where a line names none."""
        by_name: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            if outcome.domain is None:
                return []
            by_name.setdefault(outcome.domain, []).append(outcome)
        return sorted(by_name.items(), key=lambda item: (-len(item[1]), item[0]))


def _of_turns(loss: Loss, turns: Sequence[Any]) -> float:
    """A run's loss from its turns: whether any of them is lost, or their mean."""
    mean = losses.trajectory_mean(turns)
    return float(any(turns)) if loss is Loss.ANY_DIVERGENCE else mean


def read_units(name: str, content: bytes) -> Units:
    """The units of a file.

    A line is a number; or an object with `unit` and one of `loss` (a number, true or false), `losses` (those of its turns: their mean
    counts), `decisions` ([reference, reference again, pruned], or without the second), `verdicts` (of several graders: true is a loss), or
    `reference` and `pruned` (whether the task was solved), perhaps with `rerun` (solved by a second reference run) and `domain`.

    Raises:
        BadLosses: a line is of another form, or a unit comes twice; the text gives its number.
    """
    rows: list[tuple[str, Any]] = []
    outcomes: list[Outcome] = []
    seen: set[str] = set()
    form: Form | None = None
    for number, value in objects(name, content):
        found = _form(value)
        if found is None:
            bad(name, number, "no number, and no object with unit and one of loss, losses, decisions, verdicts, or reference and pruned")
        form = form or found
        if found is not form:
            bad(name, number, f"holds {found.value}, while the first line holds {form.value}; one file has one form")
        if found is Form.NUMBERS:
            rows.append((str(number), value))
            continue
        unit = text(name, number, value, "unit")
        if unit in seen:
            bad(name, number, f"unit {unit[:80]!r} comes twice; give one line a run, with the losses of its turns as a list")
        seen.add(unit)
        content_of = _READ[found](name, number, value)
        rows.append((unit, content_of))
        if isinstance(content_of, Outcome):
            outcomes.append(content_of)
    if form is None:
        raise BadLosses(f"{name}: there is no line with a loss")
    return Units(name=name, form=form, rows=tuple(rows), outcomes=tuple(outcomes))


def objects(name: str, content: bytes) -> Iterator[tuple[int, Any]]:
    """Number (from 1) and JSON value of each line that is not blank.

    Raises:
        BadLosses: a line is too long, no UTF-8 or no JSON; numbers that JSON does not know (NaN, Infinity) are refused too.
    """
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        if len(line) > LINE_BYTES:
            bad(name, number, f"longer than {LINE_BYTES // 1024} KiB")
        try:
            yield number, json.loads(line, parse_constant=_no_number)
        except (ValueError, RecursionError):
            bad(name, number, "no JSON: expected a number, or an object on one line")


def bad(name: str, number: int, why: str) -> NoReturn:
    """Refuse a line."""
    raise BadLosses(f"{name}, line {number}: {why}")


def text(name: str, number: int, value: dict[str, Any], field: str) -> str:
    """A field that names something."""
    found = value.get(field)
    if isinstance(found, int) and not isinstance(found, bool):
        found = str(found) if abs(found) < 10**18 else None
    if not isinstance(found, str) or not found or len(found) > NAME_CHARS:
        bad(name, number, f"`{field}` must be a text of 1 to {NAME_CHARS} characters")
    return found


def real(name: str, number: int, value: dict[str, Any], field: str) -> float:
    """A field that holds a finite number."""
    found = value.get(field)
    if isinstance(found, bool) or not isinstance(found, int | float) or not _finite(found):
        bad(name, number, f"`{field}` must be a finite number")
    return float(found)


def whole(name: str, number: int, value: dict[str, Any], field: str) -> int:
    """A field that holds a count."""
    found = value.get(field)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < 10**12:
        bad(name, number, f"`{field}` must be a count")
    return found


def _finite(value: float) -> bool:
    """Whether a number is a finite double; an integer may have a thousand digits."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _no_number(word: str) -> NoReturn:
    """Refuse NaN and the infinities, which Python reads and JSON does not have."""
    raise ValueError(word)


def _form(value: object) -> Form | None:
    """The form of a line."""
    if isinstance(value, int | float):  # booleans too
        return Form.NUMBERS
    if not isinstance(value, dict):
        return None
    if "reference" in value or "pruned" in value:
        return Form.OUTCOME
    return next((form for form in (Form.LOSS, Form.TURNS, Form.DECISIONS, Form.VERDICTS) if form.value in value), None)


def _loss(name: str, number: int, value: dict[str, Any]) -> object:
    """A loss as it stands; its declared type checks it."""
    if not isinstance(value["loss"], int | float):
        bad(name, number, "`loss` must be a number, true or false")
    return value["loss"]


def _list(field: str, kinds: type | tuple[type, ...], words: str, least: int = 1) -> Callable[[str, int, dict[str, Any]], Sequence[Any]]:
    """A reader of a field that holds a list."""

    def read(name: str, number: int, value: dict[str, Any]) -> Sequence[Any]:
        found = value[field]
        if not isinstance(found, list) or len(found) < least or not all(isinstance(one, kinds) for one in found):
            bad(name, number, f"`{field}` must be a list of {words}")
        return found

    return read


def _outcome(name: str, number: int, value: dict[str, Any]) -> Outcome:
    """What became of a task."""
    for field in ("reference", "pruned"):
        if not isinstance(value.get(field), bool):
            bad(name, number, f"`{field}` must be true (solved) or false")
    if not isinstance(value.get("rerun"), bool | None):
        bad(name, number, "`rerun` must be true (solved by a second reference run), false or left out")
    domain = text(name, number, value, "domain") if value.get("domain") is not None else None
    return Outcome(
        unit=text(name, number, value, "unit"),
        reference=value["reference"],
        pruned=value["pruned"],
        rerun=value.get("rerun"),
        domain=domain,
    )


_READ: Final[dict[Form, Callable[[str, int, dict[str, Any]], Any]]] = {
    Form.LOSS: _loss,
    Form.TURNS: _list("losses", (int, float), "numbers, one a turn"),
    Form.DECISIONS: _list("decisions", str, "two or three texts: reference, reference again, pruned", least=2),
    Form.VERDICTS: _list("verdicts", bool, "true or false, one a grader"),
    Form.OUTCOME: _outcome,
}
