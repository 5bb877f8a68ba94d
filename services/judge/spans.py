"""Spans of judge calls by OpenTelemetry's GenAI conventions: one for the judge that was asked, one under it for each model call.

Winnow's own operation is `decide`: a model answers closed questions with probabilities, which is neither a chat nor a guardrail. Texts
never stand in a span; tokens, models and failures do.
"""

from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from winnow.contracts.vocabulary import Outcome
from winnow.judging.port import Judge, JudgeAnswer, JudgeCall
from winnow.telemetry import Attr, Traces
from winnow.telemetry.traces import safe

OPERATION = "decide"


def record(
    traces: Traces, context: Context | None, judges: Mapping[str, Judge], judge: Judge, answer: JudgeAnswer, *, began_ns: int, ended_ns: int
) -> None:
    """Record that `judge` was asked from `began_ns` to `ended_ns` (wall clock, nanoseconds), under the span of `context`.

    The calls of one boundary are sent together; each span begins with the first and is as long as its call took, retries included.
    """
    if not traces.recording or not judge.capabilities.remote:
        return
    reason = None if answer.reason is None else answer.reason.value
    own: dict[Attr, AttributeValue | None] = {
        Attr.JUDGE: judge.id.name,
        Attr.OUTCOME: answer.outcome.value,
        Attr.REASON: reason,
        Attr.JUDGE_REQUESTS: sum(call.requests for call in answer.calls),
        Attr.ENTRIES_TOTAL: len(answer.scores),
        Attr.ENTRIES_UNSCORED: sum(score.score is None for score in answer.scores),
    }
    span = traces.tracer.start_span(
        f"judge {judge.id.name}", context=context, kind=SpanKind.INTERNAL, attributes=safe(own), start_time=began_ns
    )
    inside = trace.set_span_in_context(span, context)
    for call in answer.calls:
        if call.requests:
            _call(traces, inside, judges, judge, call, began_ns, ended_ns)
    if answer.outcome is Outcome.UNJUDGED:
        span.set_status(Status(StatusCode.ERROR, reason or ""))
    span.end(ended_ns)


def _call(
    traces: Traces, context: Context, judges: Mapping[str, Judge], judge: Judge, call: JudgeCall, began_ns: int, ended_ns: int
) -> None:
    """One call of a model."""
    asked = judge if call.judge is None else judges.get(call.judge.name, judge)
    known: dict[Attr, AttributeValue | None] = {
        Attr.GENAI_OPERATION: OPERATION,
        Attr.GENAI_PROVIDER: asked.capabilities.provider,
        Attr.GENAI_REQUEST_MODEL: call.asked_model,
        Attr.GENAI_RESPONSE_MODEL: call.model if call.error is None else None,
        Attr.GENAI_INPUT_TOKENS: call.input_tokens,
        Attr.GENAI_OUTPUT_TOKENS: call.output_tokens,
        Attr.SERVER_ADDRESS: asked.capabilities.server,
        Attr.ERROR_TYPE: call.error,
        Attr.JUDGE: asked.id.name,
        Attr.JUDGE_REQUESTS: call.requests,
        Attr.ENTRIES_TOTAL: call.entries,
        Attr.EVIDENCE_TRUNCATED: call.evidence_truncated,
    }
    span = traces.tracer.start_span(
        f"{OPERATION} {call.asked_model or call.model}",
        context=context,
        kind=SpanKind.CLIENT,
        attributes=safe(known),
        start_time=began_ns,
    )
    if call.error is not None:
        span.set_status(Status(StatusCode.ERROR, call.error))
    span.end(min(ended_ns, began_ns + int(call.latency_ms * 1e6)))
