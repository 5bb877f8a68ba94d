"""Sizes that producers and consumers must agree on. Bytes unless a name says otherwise."""

KIB = 1024
MIB = 1024 * KIB

#: The largest number of a boundary, of a message, of tokens: what the tables' integer columns hold.
MAX_NUMBER = 2**31 - 1
#: P, R, M and committed summaries travel inline up to here and by handle above.
INLINE_TEXT_BYTES = 64 * KIB
#: Body of a candidate event before compression. Above it the messages go first, as an original, and the event carries a claim check.
CANDIDATE_BODY_BYTES = 8 * MIB
#: `max.message.bytes` of the candidate topic: the body, key, headers and batch overhead. aiokafka checks *uncompressed* bytes.
CANDIDATE_RECORD_BYTES = 9 * MIB
#: Body of any other event; above it the body is stored as an original and the record carries a claim check.
EVENT_BODY_BYTES = 900 * KIB
#: `max.message.bytes` of all other topics.
EVENT_RECORD_BYTES = 1 * MIB
#: `max.message.bytes` of the dead-letter topic: a candidate and the reasons. What is larger goes to the table only.
DEAD_LETTER_RECORD_BYTES = 10 * MIB
#: The largest original: messages of a span of about 15 million tokens. A limit against memory exhaustion, not a format limit.
ORIGINAL_BYTES = 64 * MIB
#: A candidate summary above this is rejected as too large: 60 times the largest that a known host writes (16,000 UTF-16 units).
SUMMARY_BYTES = 1 * MIB
#: Entries judged a boundary; a longer summary is `rejected: too_large` rather than judged in part.
MAX_ENTRIES = 20_000
#: Messages of H and R together.
MAX_MESSAGES = 100_000
#: Host pins a boundary.
MAX_PINS = 256
#: Days that content topics keep records: the stated horizon of erasure on the bus.
CONTENT_RETENTION_DAYS = 7
