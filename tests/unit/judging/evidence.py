"""Evidence for the tests of judges."""

from datetime import UTC, datetime
from uuid import UUID

from winnow.compaction.analysis import FEATURES_VERSION, Analysis
from winnow.compaction.features import STORED
from winnow.contracts.events import Entry, Evidence, Text, ValueOrigin, sha256
from winnow.contracts.vocabulary import Mode, ProvenanceClass, Rules, SectionClass

#: Features of an entry about which nothing is known.
NOTHING = dict.fromkeys(STORED, 0.0)
#: What is added for one that outputs say, and for one that the previous summary says; both judges call either sourced.
SAID = {"env_mass": 3.0, "val_near": 1.4, "out_fits": 1.0, "bg_env": 0.4, "novel_pass": 1.0}
TAKEN_OVER = {
    "prev_stretch": 3.0, "prev_strict": 3.0, "prev_dice": 1.0, "prev_covered": 1.0, "val_unit": 1.0, "bg_prev": 1.0,
}  # fmt: skip


def entry(n: int = 1, *, sources=(), provenance=ProvenanceClass.NOWHERE, values=(), features=None, **more) -> Entry:
    return Entry(
        n=n,
        section="Decisions",
        section_class=SectionClass.UNKNOWN,
        text="- text",
        span=(0, 7),
        provenance=provenance,
        sources=sources,
        values=values,
        features=NOTHING if features is None else NOTHING | features,
        **more,
    )


def value(text: str, origin: ProvenanceClass, message: int | None = None, tool: str | None = None) -> ValueOrigin:
    return ValueOrigin(value=text, origin=origin, message=message, tool=tool)


def evidence(*entries: Entry, passages=(), rules=Rules.WINNOW, user_turns_survive=False, features_version=FEATURES_VERSION) -> Evidence:
    return Evidence(
        fleet="fleet",
        run="run",
        agent="agent",
        boundary_id=UUID(int=1),
        request_sha256=sha256(""),
        candidate_sha256=sha256(""),
        operating_point=0,
        index=1,
        boundary_at=datetime(2026, 1, 1, tzinfo=UTC),
        mode=Mode.ENFORCE,
        rules=rules,
        profile="openclaw",
        user_turns_survive=user_turns_survive,
        task=Text.of(""),
        retained=Text.of("[]"),
        passages=passages,
        entries=entries,
        parser_version="1",
        features_version=features_version,
        messages_sha256=sha256(""),
    )


def of(analysis: Analysis, *, rules=Rules.WINNOW, user_turns_survive=False) -> Evidence:
    """The evidence of an analysed boundary."""
    return evidence(*analysis.entries, passages=analysis.passages, rules=rules, user_turns_survive=user_turns_survive)
