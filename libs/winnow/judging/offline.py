"""A boundary that no service has seen, as a request to a judge: for files, evaluations and history that is judged again. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from winnow.compaction.analysis import FEATURES_VERSION
from winnow.compaction.boundary import NOTHING_GIVEN, Examined, examine
from winnow.compaction.parse import PARSER_VERSION
from winnow.compaction.recovered import relabelled
from winnow.contracts.events import Evidence, Message, Messages, Text, sha256
from winnow.contracts.vocabulary import Mode, Rules
from winnow.judging.port import JudgeRequest

#: Names and times of a boundary do not enter a score, so one without them gets these.
_NOBODY: Final = "offline"
_NO_TIME: Final = datetime.fromtimestamp(0, UTC)


def request_of(  # noqa: PLR0913  the parts of a boundary, each by its name
    candidate: str,
    *,
    task: str = "",
    previous: str | None = None,
    history: Sequence[Message] = (),
    retained: Sequence[Message] = (),
    host: str | None = None,
    profile: str | None = None,
    rules: Rules = Rules.WINNOW,
    pins: Sequence[str] = (),
    user_turns_survive: bool | None = None,
    index: int = 1,
    compressor: str | None = None,
    given: Mapping[str, bool] = NOTHING_GIVEN,
) -> tuple[Examined, JudgeRequest]:
    """Examine a boundary and ask for its entries; `given` as for `examine`. Raise `TooLarge` where it has more entries than are judged."""
    if rules is Rules.WINNOW:
        retained = relabelled(retained, given)
    found = examine(
        candidate,
        task=task,
        previous=previous,
        history=history,
        retained=retained,
        host=host,
        profile=profile,
        rules=rules,
        pins=pins,
        user_turns_survive=user_turns_survive,
        given=given,
    )
    evidence = Evidence(
        fleet=_NOBODY,
        run=_NOBODY,
        agent=_NOBODY,
        boundary_id=UUID(int=0),
        request_sha256=sha256(""),
        candidate_sha256=sha256(candidate),
        operating_point=0,
        index=index,
        boundary_at=_NO_TIME,
        mode=Mode.SHADOW,
        rules=rules,
        host=host,
        profile=found.parsed.profile,
        user_turns_survive=found.user_turns_survive,
        not_a_summary=found.parsed.outcome,
        task=Text.of(task),
        previous=None if previous is None else Text.of(previous),
        retained=Text.of(Messages(retained=tuple(retained)).content().decode()),
        passages=found.analysis.passages,
        entries=found.analysis.entries,
        parser_version=PARSER_VERSION,
        features_version=FEATURES_VERSION,
        messages_sha256=sha256(""),
        compressor=compressor,
        warnings=(*found.parsed.warnings, *found.analysis.warnings),
    )
    return found, JudgeRequest(evidence=evidence, task=task, previous=previous, retained=tuple(retained))
