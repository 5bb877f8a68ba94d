"""The judge port: what every judge, local or remote, is asked and answers."""

from dataclasses import dataclass
from typing import Protocol

from winnow.contracts.deadline import Deadline
from winnow.contracts.events import Evidence, JudgeId, Message, Score
from winnow.contracts.vocabulary import Outcome, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a judge is and can do; callers decide by these, never by its name."""

    #: It leaves the process: it costs time and money, is never asked past the deadline, and each call is recorded first.
    remote: bool
    #: The same request gives the same answer, to the last bit.
    deterministic: bool
    #: It lowers the score of an entry that an output contradicts, or that is listed as open and done. False: digit changes pass.
    refutes: bool
    #: It reads P, M and R of the request; otherwise the caller need not fetch them.
    reads_texts: bool
    #: Tokens that one request may hold; None: no limit. A longer boundary is split by the judge, which says so in its calls.
    context_tokens: int | None = None
    #: Who provides a remote judge, in the words of OpenTelemetry's GenAI conventions where they have one: typesafe, openrouter, anthropic.
    provider: str | None = None
    #: Host of its endpoint; never a whole URL, which may hold an account's name.
    server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """One boundary, texts resolved by the caller."""

    evidence: Evidence
    task: str
    previous: str | None
    retained: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCall:
    """What one call of a model took. Unknown is None, never 0."""

    model: str
    #: Who was asked, where it is not the judge that answers: a member of an ensemble.
    judge: JudgeId | None = None
    #: The model that was asked for; `model` is the one that answered, where one did.
    asked_model: str | None = None
    requests: int = 1  # with retries
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    latency_ms: float = 0.0
    error: str | None = None  # a short class of failure, without content
    entries: int = 0  # entries asked about; less than all where the boundary was split
    #: How far the request had to be shrunk to fit: whole, split, evidence_trimmed, retained_abridged, previous_abridged.
    stage: str = "whole"
    #: Evidence of its entries was left out.
    evidence_truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAnswer:
    """A judge's answer for a boundary.

    `outcome` is `judged`, `judged_partial` (reason `unscored_entries`) or `unjudged` (reason `deadline` or `judge_failed`).
    `scores` has one score for each entry in their order, or is empty where the outcome is `unjudged`. Where an ensemble answers, `others`
    has what its members said, for the record.
    """

    judge: JudgeId
    outcome: Outcome
    reason: Reason | None
    scores: tuple[Score, ...]
    calls: tuple[JudgeCall, ...]
    others: tuple["JudgeAnswer", ...] = ()


class Judge(Protocol):
    """Says of every entry of a boundary how probable it is that it has a source.

    A judge keeps no memory between boundaries: the answer depends on the request alone, so that stages scale out and restart freely. What
    a remote judge remembers is how its endpoint fared, which decides whether it is asked, never what it answers.
    """

    @property
    def id(self) -> JudgeId:
        """Name and version. Whatever changes a score changes the version."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What the judge is and can do; constant."""
        ...

    async def judge(self, request: JudgeRequest, deadline: Deadline) -> JudgeAnswer:
        """Judge all entries of a boundary.

        Waiting is for remote judges only, on their own sockets, and ends by `deadline`; a local judge computes for at most tens of
        milliseconds and does not wait. Nothing is stored and nothing published.

        An answer that is late, missing, malformed or incomplete is no exception: the entries without a usable answer come back
        `unscored` (`judged_partial`), or the outcome is `unjudged`. Only a programming error raises. Texts of the request are
        untrusted data: what one entry says must not change another entry's score.
        """
        ...
