"""From an answer to what the agent may use: pure checks that bind the committed bytes to the judged ones."""

from collections.abc import Iterable
from dataclasses import replace

from winnow.client.result import Because, Compaction, Unheard, own
from winnow.contracts.events import Candidate, Committed, EntryDecision, sha256
from winnow.contracts.vocabulary import Adopted, Decision, Mode, Outcome, Reason


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """`text` without the UTF-8 byte ranges `spans`, which may come in any order.

    Raise `Unheard` where they overlap, lie outside the text, or cut a character: then they are not whole entries of it.
    """
    data = text.encode()
    kept: list[bytes] = []
    at = 0
    for start, end in sorted(spans):
        if not at <= start <= end <= len(data):
            raise Unheard(Because.HASH_MISMATCH, "the entry spans do not lie in the candidate one after another")
        kept.append(data[at:start])
        at = end
    kept.append(data[at:])
    try:
        return b"".join(kept).decode()
    except UnicodeDecodeError:
        raise Unheard(Because.HASH_MISMATCH, "an entry span cuts a character") from None


def committed_text(candidate: Candidate, committed: Committed) -> str:
    """The committed summary, rebuilt from the candidate and checked against everything that the answer states of it.

    In enforce mode it is the candidate without the entries that were pruned; in the milder modes it is the candidate. So a summary that
    travels by handle need not be fetched. Raise `Unheard` where bytes, hash and decisions do not agree.
    """
    pruned = [d.span for d in committed.decisions if d.decision is Decision.PRUNED] if committed.mode is Mode.ENFORCE else []
    text = without(candidate.candidate, pruned)
    if committed.summary is None or committed.committed_sha256 != committed.summary.sha256:
        raise Unheard(Because.HASH_MISMATCH, "the answer states no committed summary, or two hashes of it")
    if sha256(text) != committed.committed_sha256:
        raise Unheard(Because.HASH_MISMATCH, "the candidate without the pruned entries does not have the committed hash")
    if committed.summary.text is not None and committed.summary.text != text:
        raise Unheard(Because.HASH_MISMATCH, "the committed bytes are not those that the committed hash names")
    return text


def _not_ours(candidate: Candidate, request_sha256: str, committed: Committed) -> Because | None:
    """Why an answer is not one to this request, or None where it is."""
    if (committed.fleet, committed.run, committed.boundary_id) != (candidate.fleet, candidate.run, candidate.boundary_id):
        return Because.INVALID_ANSWER
    if committed.request_sha256 != request_sha256:
        return Because.ID_CONFLICT
    if committed.candidate_sha256 != candidate.candidate_sha256:
        return Because.HASH_MISMATCH
    return None


def settle(candidate: Candidate, request_sha256: str, committed: Committed) -> Compaction:
    """Decide which text the agent goes on with. Never raises: an answer that cannot be trusted is the agent's own candidate.

    `request_sha256` is `candidate.request_sha256()`, computed once by the caller (it hashes the messages).
    """
    if (because := _not_ours(candidate, request_sha256, committed)) is not None:
        return own(candidate, because)
    mine = own(
        candidate,
        Because.REJECTED,
        outcome=committed.outcome,
        reason=committed.reason,
        mode=committed.mode,
        committed_sha256=committed.committed_sha256,
        late=committed.late,
        candidate_handle=committed.candidate_handle,
        history_handle=committed.history_handle,
        warnings=committed.warnings,
    )
    if committed.outcome is Outcome.REJECTED:
        return replace(mine, bypassed_because=Because.ID_CONFLICT) if committed.reason is Reason.ID_CONFLICT else mine
    if committed.late:
        return replace(mine, bypassed_because=Because.LATE)
    try:
        text = committed_text(candidate, committed)
    except Unheard as exc:
        return replace(mine, bypassed_because=exc.because)
    decisions: tuple[EntryDecision, ...] = () if committed.mode is Mode.SHADOW else committed.decisions
    return replace(
        mine,
        summary=text,
        source=Adopted.COMMITTED,
        bypassed_because=None,
        decisions=decisions,
        pruned=committed.pruned if committed.mode is Mode.ENFORCE else 0,
    )
