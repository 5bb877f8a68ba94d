"""The error tree. `Retryable` and `Permanent` decide the road of a message; the docstring is the default text."""

import inspect


class WinnowError(Exception):
    """Unexpected Winnow error."""

    def __init__(self, message: str | None = None) -> None:
        """Take `message`, or the class docstring where none is given."""
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or ""))


class Retryable(WinnowError):
    """The operation may succeed later; retry it with back-off."""


class Permanent(WinnowError):
    """The same input fails every time; send it to the dead-letter topic."""

    #: Reason code on the dead letter or in the problem document (see `vocabulary.Reason`).
    reason: str = "invalid"

    def __init__(self, message: str | None = None, *, reason: str | None = None) -> None:
        """Take `message` and, where it differs from the class's own, the reason code."""
        super().__init__(message)
        if reason is not None:
            self.reason = reason


class SchemaTooNew(Retryable):
    """The event has a newer major version than this service knows; consumption pauses until a newer service runs."""


class Conflict(Permanent):
    """The same boundary id was submitted before with other content; use a new id or resend the first content."""

    reason = "id_conflict"


class EventIdTaken(Permanent):
    """event_id: it stands for something else that was said before; send a new one for each event."""

    reason = "id_conflict"


class TooLarge(Permanent):
    """The content is above the limit; store the messages as originals and send a claim check."""

    reason = "too_large"


class Gone(Permanent):
    """The original has expired or was erased."""

    reason = "gone"


class NotFound(Permanent):
    """There is no such thing in this fleet."""

    reason = "not_found"


class HashMismatch(Permanent):
    """The bytes do not have the hash that was stated for them; nothing was judged."""

    reason = "hash_mismatch"
