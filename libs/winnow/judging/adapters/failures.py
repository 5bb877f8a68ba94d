"""What can go wrong with a remote judge, in a closed list: the words of `judge_calls.error`, of metrics and of logs."""

from enum import StrEnum

from winnow.contracts.errors import WinnowError


class Failure(StrEnum):
    """Why a request to a judge gave no usable answer. Names only grow."""

    CONNECT = "connect"  # no connection, or it broke
    TIMEOUT = "timeout"  # no whole answer in time, 408 included
    DEADLINE = "deadline"  # no time was left to ask
    UNAUTHORISED = "unauthorised"  # 401, 403, or no key
    UNPAID = "unpaid"  # 402, or a refusal that names the credit
    RATE_LIMITED = "rate_limited"  # 429
    OVERLOADED = "overloaded"  # 529, 503
    SERVER_ERROR = "server_error"  # other 5xx
    REFUSED = "refused"  # other 4xx: the request itself is wrong
    REDIRECTED = "redirected"  # 3xx: never followed, the key would go along
    MALFORMED = "malformed"  # not the protocol's JSON
    BODY_TOO_LARGE = "body_too_large"  # more bytes than any answer has
    WRONG_MODEL = "wrong_model"  # another model answered than the one that was pinned
    CIRCUIT_OPEN = "circuit_open"  # not asked: the endpoint failed again and again
    STATE_TOO_LARGE = "state_too_large"  # no stage of shrinking makes the request fit
    REQUESTS_CAPPED = "requests_capped"  # the boundary would take more requests than may be spent on one
    NOT_SENT = "not_sent"  # another request of the same boundary failed before this one was sent
    ANSWERS_UNUSABLE = "answers_unusable"  # the answer is there, some of its entries are missing or no probabilities


#: A later attempt may succeed. Everything else is final for this request.
RETRYABLE = frozenset({Failure.CONNECT, Failure.TIMEOUT, Failure.RATE_LIMITED, Failure.OVERLOADED, Failure.SERVER_ERROR})
#: The provider did no work, so it cost nothing. What another failure cost is not known: a time-out or an unusable answer may be billed.
UNBILLED = frozenset(
    {
        Failure.UNAUTHORISED, Failure.UNPAID, Failure.RATE_LIMITED, Failure.OVERLOADED, Failure.SERVER_ERROR, Failure.REFUSED,
        Failure.REDIRECTED, Failure.DEADLINE, Failure.CIRCUIT_OPEN, Failure.NOT_SENT, Failure.STATE_TOO_LARGE, Failure.REQUESTS_CAPPED,
    }
)  # fmt: skip
#: A person has to act: these open the circuit at once and raise an alert.
HUMAN = frozenset({Failure.UNAUTHORISED, Failure.UNPAID})


class Failed(WinnowError):
    """A request to a judge gave no usable answer. Caught where the answer is made; it never leaves the adapters."""

    def __init__(self, failure: Failure, *, retry_after_s: float | None = None) -> None:
        """`retry_after_s`: what the server asks to be waited."""
        super().__init__(failure.value)
        self.failure = failure
        self.retry_after_s = retry_after_s
