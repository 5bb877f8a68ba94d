"""Names of attributes of spans, evaluations and metrics.

Winnow's own stand under `winnow.`; those of OpenTelemetry's messaging and GenAI conventions are theirs.
"""

from enum import StrEnum


class Attr(StrEnum):
    """Attribute names. Content never stands in an attribute: lengths, hashes and counts only."""

    BOUNDARY_ID = "winnow.boundary.id"
    BOUNDARY_INDEX = "winnow.boundary.index"
    HOST = "winnow.host"
    MODE = "winnow.mode"
    OUTCOME = "winnow.outcome"
    REASON = "winnow.reason"
    ENTRIES_TOTAL = "winnow.entries.total"
    ENTRIES_KEPT = "winnow.entries.kept"
    ENTRIES_PRUNED = "winnow.entries.pruned"
    ENTRIES_PINNED = "winnow.entries.pinned"
    ENTRIES_UNSCORED = "winnow.entries.unscored"
    THRESHOLD = "winnow.threshold"
    JUDGE = "winnow.judge.name"
    JUDGE_REQUESTS = "winnow.judge.requests"
    EVIDENCE_PASSAGES = "winnow.evidence.passages"
    EVIDENCE_TRUNCATED = "winnow.evidence.truncated"
    CHARS_BEFORE = "winnow.summary.chars.before"
    CHARS_AFTER = "winnow.summary.chars.after"
    MESSAGING_SYSTEM = "messaging.system"
    OPERATION_NAME = "messaging.operation.name"
    OPERATION_TYPE = "messaging.operation.type"
    DESTINATION = "messaging.destination.name"
    PARTITION = "messaging.destination.partition.id"
    CONSUMER_GROUP = "messaging.consumer.group.name"
    OFFSET = "messaging.kafka.offset"
    TOMBSTONE = "messaging.kafka.message.tombstone"
    BATCH_COUNT = "messaging.batch.message_count"
    ERROR_TYPE = "error.type"
    GENAI_OPERATION = "gen_ai.operation.name"
    GENAI_PROVIDER = "gen_ai.provider.name"
    GENAI_REQUEST_MODEL = "gen_ai.request.model"
    GENAI_RESPONSE_MODEL = "gen_ai.response.model"
    GENAI_INPUT_TOKENS = "gen_ai.usage.input_tokens"
    GENAI_OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
    GENAI_TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105  the name of an attribute
    EVALUATION_NAME = "gen_ai.evaluation.name"
    EVALUATION_SCORE = "gen_ai.evaluation.score.value"
    EVALUATION_LABEL = "gen_ai.evaluation.score.label"
    SERVER_ADDRESS = "server.address"


ATTRIBUTE_DOCS: dict[Attr, str] = {
    Attr.BOUNDARY_ID: "The boundary (spans may carry ids, metrics never do).",
    Attr.BOUNDARY_INDEX: "Number of the boundary in its run.",
    Attr.HOST: "The agent runtime.",
    Attr.MODE: "The effective mode.",
    Attr.OUTCOME: "How the boundary ended.",
    Attr.REASON: "Why, for everything but judged.",
    Attr.ENTRIES_TOTAL: "Entries of the candidate.",
    Attr.ENTRIES_KEPT: "Entries kept.",
    Attr.ENTRIES_PRUNED: "Entries pruned.",
    Attr.ENTRIES_PINNED: "Entries pinned by the host or the profile.",
    Attr.ENTRIES_UNSCORED: "Entries without a usable answer.",
    Attr.THRESHOLD: "The threshold tau.",
    Attr.JUDGE: "The judge that was asked, by its configured name.",
    Attr.JUDGE_REQUESTS: "Requests to the judge, with retries.",
    Attr.EVIDENCE_PASSAGES: "Passages in the pool.",
    Attr.EVIDENCE_TRUNCATED: "The pool was cut.",
    Attr.CHARS_BEFORE: "Characters of the candidate.",
    Attr.CHARS_AFTER: "Characters of the committed summary.",
    Attr.MESSAGING_SYSTEM: "`kafka`.",
    Attr.OPERATION_NAME: "`send` or `process`.",
    Attr.OPERATION_TYPE: "`send` or `process`.",
    Attr.DESTINATION: "Topic name.",
    Attr.PARTITION: "Partition, as a string.",
    Attr.CONSUMER_GROUP: "Consumer group.",
    Attr.OFFSET: "Offset of the record.",
    Attr.TOMBSTONE: "The record has no body.",
    Attr.BATCH_COUNT: "Records of the batch.",
    Attr.ERROR_TYPE: "Class of the error or reason code.",
    Attr.GENAI_OPERATION: "`decide` for a judge call.",
    Attr.GENAI_PROVIDER: "Provider of a remote judge.",
    Attr.GENAI_REQUEST_MODEL: "Model that was asked.",
    Attr.GENAI_RESPONSE_MODEL: "Model that answered.",
    Attr.GENAI_INPUT_TOKENS: "Input tokens.",
    Attr.GENAI_OUTPUT_TOKENS: "Output tokens.",
    Attr.GENAI_TOKEN_TYPE: "`input` or `output` (metrics).",
    Attr.EVALUATION_NAME: "`source_support` (events).",
    Attr.EVALUATION_SCORE: "Share of the scored entries whose score reaches the threshold.",
    Attr.EVALUATION_LABEL: "`supported` (all of them), `unsupported` (none) or `mixed`.",
    Attr.SERVER_ADDRESS: "Host of a remote judge.",
}
