"""Codes in words. What a number may be trusted for is said here once, for all pages."""

from collections.abc import Mapping

from winnow.contracts.vocabulary import DecisionReason, FindingKind, Guarantee, Outcome, ProvenanceClass, RootSource, SectionClass, Verdict

OUTCOMES: Mapping[Outcome, str] = {
    Outcome.JUDGED: "every entry was judged",
    Outcome.JUDGED_PARTIAL: "some entries had no usable answer and were kept",
    Outcome.UNJUDGED: "no judge in time: the candidate was committed as it was written",
    Outcome.NOT_A_SUMMARY: "not a summary: nothing was pruned",
    Outcome.REJECTED: "rejected: the host keeps its own behaviour",
}
VERDICTS: Mapping[Verdict, str] = {
    Verdict.SOURCED: "has a source",
    Verdict.UNSOURCED: "no source found",
    Verdict.USER_SOURCED: "only the user said it",
    Verdict.CONTRADICTED: "contradicted",
    Verdict.STALE: "open here, and already done",
    Verdict.UNSCORED: "no usable answer",
}
REASONS: Mapping[DecisionReason, str] = {
    DecisionReason.SCORE: "its score, compared with the threshold",
    DecisionReason.PINNED: "pinned: the host asks for this line",
    DecisionReason.RECOVERED: "the agent asked it back, so it stays for the rest of the run",
    DecisionReason.SCAFFOLD: "scaffold: an entry below it is kept",
    DecisionReason.UNSCORED: "no usable answer, so it stays",
    DecisionReason.USER_SOURCED: "the user said it, and user turns do not survive",
    DecisionReason.STALE: "it is listed as open although it is done",
    DecisionReason.INHERITED_UNSOURCED: "it rests on an entry of the previous summary that had no source",
    DecisionReason.NOT_JUDGED: "nothing was judged at this boundary",
}
PROVENANCE: Mapping[ProvenanceClass, str] = {
    ProvenanceClass.ENVIRONMENT: "an output of the environment",
    ProvenanceClass.PREVIOUS: "the previous summary",
    ProvenanceClass.DERIVED: "computed from what outputs say",
    ProvenanceClass.USER: "a user turn",
    ProvenanceClass.TASK: "the task",
    ProvenanceClass.AGENT: "the agent itself",
    ProvenanceClass.NOWHERE: "nowhere in the span",
}
ROOTS: Mapping[RootSource, str] = {
    RootSource.ENVIRONMENT: "environment",
    RootSource.DERIVED: "derived from the environment",
    RootSource.USER: "user",
    RootSource.NONE: "none",
    RootSource.PREVIOUS_UNKNOWN: "a previous summary that Winnow has not seen",
}
FINDINGS: Mapping[FindingKind, str] = {
    FindingKind.CONTRADICTED: "another value for the same key",
    FindingKind.ORPHAN: "a value that nobody says",
    FindingKind.STALE: "done already",
    FindingKind.REWRITTEN_CONSTRAINT: "restates a condition differently",
    FindingKind.INVENTED_DELIVERABLE: "asks for something that nobody asked for",
}
KINDS: Mapping[str, str] = {
    "task": "task",
    "history": "history (H and R, as JSON)",
    "previous": "previous summary",
    "candidate": "candidate",
    "committed": "committed summary",
}
SECTIONS: Mapping[SectionClass, str] = {
    SectionClass.OBSERVATION: "observations",
    SectionClass.FORWARD: "plans",
    SectionClass.MIXED: "mixed",
    SectionClass.INTENT: "intent",
    SectionClass.VERBATIM: "verbatim",
    SectionClass.HOST_SUFFIX: "host suffix",
    SectionClass.UNKNOWN: "unknown",
}
GUARANTEES: Mapping[Guarantee, str] = {
    Guarantee.FIXED_N: "valid for one computation at a number of units that was fixed beforehand",
    Guarantee.ANYTIME: "valid at every look and every stopping time, for the life of the stream",
    Guarantee.ARL: "only the mean time to a false alarm is bounded; it will alarm again and again",
    Guarantee.EXPECTATION: "the mean over calibration sets is bounded; this one may exceed it",
    Guarantee.NONE: "an estimate or a plain threshold, without a guarantee",
}
STREAM_VERDICTS: Mapping[str, str] = {
    "breached": "Breached: the risk is above its budget.",
    "certified": "Certified: the upper bound of the risk is at most the budget.",
    "unproven": "Unproven: no breach shown, and no bound that says the budget is kept.",
}
STREAM_STATUS: Mapping[str, str] = {
    "ok": "no alarm",
    "warn": "the warn level was crossed; nothing is held",
    "alarm": "alarmed; the evidence is frozen",
    "held": "the state cannot be read; the fleet is held until somebody looks",
    "recovered": "alarmed, and fresh units show the risk below its budget again",
    "insufficient": "no unit was folded yet",
}
ALERTS: Mapping[str, str] = {
    "raised": "alarm",
    "warned": "warning",
    "held": "held",
    "released": "released",
    "certificate_revoked": "certificate revoked",
    "judge_unpaid": "judge unpaid",
    "judge_unauthorised": "judge unauthorised",
}


def words(code: str | None) -> str:
    """A code of a closed list as it is read."""
    return "" if code is None else code.replace("_", " ")
