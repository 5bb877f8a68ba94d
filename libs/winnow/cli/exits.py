"""Exit codes: the part of the command line that scripts read."""

from enum import IntEnum

from winnow.contracts import errors


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    FAILURE = 1  # it did not work, or part of the input was bad; standard error says what to do
    USAGE = 2  # the command was not understood
    NOT_FOUND = 3  # there is no such boundary, dead letter, fleet or key; or the original is gone
    CONFLICT = 4  # the same id was submitted before with other content; or another process holds the state folder
    UNAVAILABLE = 5  # gateway, broker or database cannot be reached; try again later
    GATE = 6  # it was measured, and a gate of the evaluation was not met
    ATTENTION = 7  # `winnow doctor`: it works, and something needs a look
    INTERRUPTED = 130  # Ctrl-C


def code_of(error: errors.WinnowError) -> ExitCode:
    """The exit code that fits an error."""
    if isinstance(error, errors.NotFound | errors.Gone):
        return ExitCode.NOT_FOUND
    if isinstance(error, errors.Conflict):
        return ExitCode.CONFLICT
    if isinstance(error, errors.Retryable):
        return ExitCode.UNAVAILABLE
    return ExitCode.FAILURE
