"""What can go wrong with a server of our own. Every text says what to do."""

from winnow.contracts.errors import WinnowError


class EmbeddedError(WinnowError):
    """An embedded server could not be run; see the text and the log file that it names."""


class MissingToolError(EmbeddedError):
    """A program or package that this server needs is not installed."""


class AlreadyRunningError(EmbeddedError):
    """Another process runs a server in this directory; stop it or choose another WINNOW_STATE_DIR."""

    def __init__(self, message: str | None = None, *, pid: int | None = None) -> None:
        """Keep the holder's process id, where it is known."""
        super().__init__(message)
        self.pid = pid


class StartFailedError(EmbeddedError):
    """The server ended, or did not answer in time, while it was starting."""


class NotRunningError(EmbeddedError):
    """The server has not been started; call start() first."""
