"""Metrics of model calls and the event of a judged boundary, by OpenTelemetry's GenAI conventions: counts, no text. Spans: `spans`."""

from opentelemetry.context import Context

from services.judge.spans import OPERATION
from winnow.contracts.events import Scores
from winnow.contracts.vocabulary import Outcome, Reason
from winnow.judging.port import Judge, JudgeCall
from winnow.telemetry import Attr, Metrics
from winnow.telemetry.evaluations import Evaluations

#: Outcomes of a boundary that a judge was asked about.
EVALUATED = frozenset({Outcome.JUDGED, Outcome.JUDGED_PARTIAL, Outcome.UNJUDGED})


def count(metrics: Metrics, asked: Judge, call: JudgeCall) -> None:
    """Time and tokens of one call of a model that `asked` made; a judge of this process calls none, and an unsent call took nothing."""
    if not asked.capabilities.remote or not call.requests:
        return
    who = {
        "gen_ai_operation_name": OPERATION,
        "gen_ai_provider_name": asked.capabilities.provider or "",
        "gen_ai_request_model": call.asked_model or call.model,
        "server_address": asked.capabilities.server or "",
    }
    metrics.observe("gen_ai_client_operation_duration_seconds", call.latency_ms / 1000, error_type=call.error or "", **who)
    for kind, tokens in (("input", call.input_tokens), ("output", call.output_tokens)):
        if tokens is not None:
            metrics.observe("gen_ai_client_token_usage", tokens, gen_ai_token_type=kind, **who)


def tell(evaluations: Evaluations, context: Context, said: Scores, *, tau: float) -> None:
    """The evaluation of one boundary against the threshold `tau`; a boundary in which nothing was to be judged has none."""
    if not evaluations.recording or said.outcome not in EVALUATED or said.reason is Reason.NO_ENTRIES:
        return
    scored = [score.score for score in said.scores if score.score is not None]
    evaluations.tell(
        context,
        supported=sum(score >= tau for score in scored),
        scored=len(scored),
        more={
            Attr.BOUNDARY_ID: str(said.boundary_id),
            Attr.JUDGE: said.judge.name,
            Attr.THRESHOLD: tau,
            Attr.OUTCOME: said.outcome.value,
            Attr.ENTRIES_TOTAL: len(said.scores),
            Attr.ENTRIES_UNSCORED: len(said.scores) - len(scored),
            Attr.ERROR_TYPE: None if said.reason is None else said.reason.value,
        },
    )
