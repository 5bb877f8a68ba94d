"""Findings of `winnow doctor`: how bad, of what, what was seen, and what to do about it."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum

from winnow.cli.exits import ExitCode
from winnow.contracts.errors import WinnowError

#: Characters of what is said of one finding; what is longer is somebody's content.
MOST_CHARS = 1_000


class Level(IntEnum):
    """How bad a finding is; ordered."""

    OK = 0  # looked at, and well
    NOTE = 1  # worth knowing, nothing to do
    WARNING = 2  # it works, and somebody should look
    ERROR = 3  # something does not work, or a promise is not kept

    @property
    def word(self) -> str:
        """As it is shown."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at. Texts are masked when the finding is made: whatever they were built from, no secret leaves."""

    level: Level
    #: What was looked at: `broker`, `database.roles`, `lag judge`, ...
    check: str
    #: What was seen.
    found: str
    #: What to do about it; empty where there is nothing to do.
    advice: str = ""

    def __post_init__(self) -> None:
        """Mask secrets and controls in every text."""
        from winnow.telemetry.redaction import mask_text, printable  # not at import time: `winnow --help` must stay quick

        for name in ("check", "found", "advice"):
            object.__setattr__(self, name, mask_text(printable(getattr(self, name), MOST_CHARS)))


def ok(check: str, found: str) -> Finding:
    """It is well."""
    return Finding(level=Level.OK, check=check, found=found)


def note(check: str, found: str, advice: str = "") -> Finding:
    """Worth knowing."""
    return Finding(level=Level.NOTE, check=check, found=found, advice=advice)


def warning(check: str, found: str, advice: str) -> Finding:
    """It works, and somebody should look."""
    return Finding(level=Level.WARNING, check=check, found=found, advice=advice)


def error(check: str, found: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(level=Level.ERROR, check=check, found=found, advice=advice)


def worst(findings: Iterable[Finding]) -> Level:
    """The worst level; `OK` where nothing was found."""
    return max((finding.level for finding in findings), default=Level.OK)


def exit_code(findings: Iterable[Finding]) -> ExitCode:
    """1 where something is an error, 7 where something is a warning, else 0."""
    level = worst(findings)
    return ExitCode.FAILURE if level is Level.ERROR else ExitCode.ATTENTION if level is Level.WARNING else ExitCode.OK


async def guarded(check: str, look: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
    """What `look` finds; a look that fails is a finding itself, and the others go on."""
    from winnow.telemetry.redaction import describe

    try:
        return await look()
    except WinnowError as exc:
        return [error(check, str(exc), "mend what the text says, then look again")]
    except Exception as exc:  # noqa: BLE001  whatever is wrong with one part must not hide the others
        return [error(check, f"this look failed: {describe(exc)}", "see whether that part runs and is of this version of Winnow")]
