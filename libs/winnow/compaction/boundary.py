"""One boundary through the core: parse the candidate and the previous summary, find evidence and provenance. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from winnow.compaction.analysis import Analysis, analyse
from winnow.compaction.parse import parse
from winnow.compaction.profiles import PROFILES
from winnow.compaction.recovered import relabelled
from winnow.compaction.roles import echoes
from winnow.compaction.segments import Parsed
from winnow.contracts import limits
from winnow.contracts.errors import TooLarge
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import Rules

#: Nothing is known of what Winnow gave back: recoveries are known by their tools alone.
NOTHING_GIVEN: Final[Mapping[str, bool]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What the core found."""

    parsed: Parsed
    analysis: Analysis
    #: The caller's word, else the profile's default.
    user_turns_survive: bool


def examine(  # noqa: PLR0913  the parts of a boundary, each by its name
    candidate: str,
    *,
    task: str,
    previous: str | None,
    history: Sequence[Message],
    retained: Sequence[Message],
    host: str | None = None,
    profile: str | None = None,
    rules: Rules = Rules.WINNOW,
    pins: Sequence[str] = (),
    user_turns_survive: bool | None = None,
    given: Mapping[str, bool] = NOTHING_GIVEN,
    findings: bool = True,
) -> Examined:
    """Examine one boundary. M is parsed with the profile that was found for the candidate: one host writes both.

    `given` says of texts that Winnow gave back whether an environment had returned them (see `compaction.recovered`); no other recovery is
    a source. Without `findings`, what the texts say against the entries is not looked for.

    Raise `TooLarge` where the candidate has more entries than are judged, before any work is done for them.
    """
    parsed = parse(candidate, host=host, profile=profile, rules=rules, pins=pins)
    if len(parsed.entries) > limits.MAX_ENTRIES:
        msg = f"the summary has {len(parsed.entries)} entries, at most {limits.MAX_ENTRIES} are judged"
        raise TooLarge(msg)
    before = parse(previous, host=host, profile=parsed.profile, rules=rules) if previous else None
    survive = PROFILES[parsed.profile].user_turns_survive if user_turns_survive is None else user_turns_survive
    if rules is Rules.WINNOW:  # the published system takes every output for a source
        own = PROFILES[parsed.profile].echo_tools
        history, retained = (echoes(relabelled(part, given), own) for part in (history, retained))
    analysis = analyse(
        parsed,
        task=task,
        previous=before,
        history=history,
        retained=retained,
        user_turns_survive=survive,
        rules=rules,
        findings=findings,
    )
    return Examined(parsed=parsed, analysis=analysis, user_turns_survive=survive)
