"""Labelled boundaries in a file: the boundary lines of `winnow judge`, each with what annotators said of its entries."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from winnow.cli.boundary_lines import LINE_BYTES, BadLine, BoundaryLine
from winnow.compaction.parse import parse
from winnow.contracts.envelope import explain
from winnow.contracts.errors import Permanent, WinnowError
from winnow.contracts.events import Model
from winnow.contracts.vocabulary import Rules
from winnow.judging.evaluation.labelled import Label, LabelledBoundary, matched
from winnow.judging.stress import Labelled

#: Bad lines that one message names.
_NAMED = 5

_Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]


class BadData(Permanent):
    """The file is no labelled data: one JSON object a line, with candidate_summary and entries (n, text, source)."""


class EntryLine(Model):
    """What annotators said of one entry; null or left out: they were not asked."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    n: int = Field(ge=1)
    text: str
    source: bool | None = None
    env: bool | None = None
    prev: bool | None = None
    user: bool | None = None
    refuted: bool | None = None
    done: bool | None = None
    correct: bool | None = None
    kind: str | None = None

    @model_validator(mode="after")
    def _answered(self) -> "EntryLine":
        """Whether the entry has a source is said, by itself or by env and prev."""
        if self.source is None and (self.env is None or self.prev is None):
            msg = "source is missing (or env and prev)"
            raise ValueError(msg)
        return self

    def label(self) -> Label:
        """The label; `source` is env or prev where it is left out."""
        source = bool(self.env or self.prev) if self.source is None else self.source
        return Label(source=source, **self.model_dump(exclude={"text", "source"}))


class LabelledLine(BoundaryLine):
    """A boundary with its labels, and what the data says of itself."""

    domain: _Text = ""
    scenario: str | None = None
    compressor: str | None = None
    grader: str | None = None
    entries: tuple[EntryLine, ...] = Field(min_length=1)

    def boundary(self, rules: Rules) -> LabelledBoundary:
        """The boundary as evaluations take it. Raise `Unmatched` where labels and entries do not belong together."""
        parsed = parse(self.candidate, host=self.host, profile=self.profile, rules=rules, pins=self.pins)
        labels = matched([(entry.text, entry.label()) for entry in self.entries], parsed.entries)
        spans = {entry.n: entry.span for entry in parsed.entries}
        run = self.run or self.id
        return LabelledBoundary(
            id=self.id,
            run=run,
            index=self.index,
            domain=self.domain,
            scenario=self.scenario or run,
            by_scenario=self.scenario is not None,
            task=self.task,
            previous=self.previous_summary,
            history=self.history,
            retained=self.retained,
            candidate=self.candidate,
            labels=labels,
            entries=tuple(
                Labelled(
                    n=label.n,
                    span=spans[label.n],
                    # Without a previous summary every source is an output; with one, unasked answers give no certain case.
                    env=bool(label.source and not self.previous_summary) if label.env is None else label.env,
                    prev=bool(label.prev),
                    user=bool(label.user),
                )
                for label in labels
            ),
            host=self.host,
            profile=self.profile,
            rules=rules,
            pins=self.pins,
            user_turns_survive=self.user_turns_survive,
        )


class Data(Model):
    """Labelled boundaries with what the file says of itself."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    boundaries: tuple[LabelledBoundary, ...]
    compressors: tuple[str, ...]
    graders: tuple[str, ...]


def read_data(data: bytes, rules: Rules = Rules.WINNOW) -> Data:
    """Read labelled lines. Raise `BadData` that names every bad line: figures on the rest would be other figures."""
    lines: list[LabelledLine] = []
    boundaries: list[LabelledBoundary] = []
    bad: list[str] = []
    seen: dict[str, int] = {}
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            line = _parsed(raw)
            if line.id in seen:
                msg = f"id {line.id[:100]!r} stands on line {seen[line.id]} already"
                raise BadLine(msg)
            seen[line.id] = number
            boundaries.append(line.boundary(rules))
            lines.append(line)
        except WinnowError as exc:
            bad.append(f"line {number}: {exc}")
    if bad:
        rest = f"\nand {len(bad) - _NAMED} more bad lines" if len(bad) > _NAMED else ""
        raise BadData("\n".join(bad[:_NAMED]) + rest)
    if not boundaries:
        msg = "the file holds no labelled boundary"
        raise BadData(msg)
    return Data(
        boundaries=tuple(boundaries),
        compressors=_said([line.compressor for line in lines]),
        graders=_said([line.grader for line in lines]),
    )


def _parsed(raw: bytes) -> LabelledLine:
    """One line. Raise `BadLine`, whose text names fields and quotes no content."""
    if len(raw) > LINE_BYTES:
        msg = f"longer than {LINE_BYTES // 2**20} MiB"
        raise BadLine(msg)
    try:
        return LabelledLine.model_validate_json(raw)
    except ValidationError as exc:
        raise BadLine(explain(exc)) from None


def _said(values: Sequence[str | None]) -> tuple[str, ...]:
    """The different things that lines say, sorted."""
    return tuple(sorted({value for value in values if value}))
