"""Judges by name, for commands that ask them without a service."""

from typing import TYPE_CHECKING

from winnow.contracts.errors import Permanent

if TYPE_CHECKING:
    from winnow.judging.port import Judge


class NoSuchJudge(Permanent):
    """There is no judge of that name."""


def judge_named(name: str) -> "Judge":
    """The judge of that name. Raise `NoSuchJudge`, which lists the names."""
    from winnow.judging.local import LocalJudge

    if name not in {"local", "formula"}:
        msg = f"there is no judge {name[:80]!r}; there are local and formula"
        raise NoSuchJudge(msg)
    return LocalJudge()


def trained_on(judge: "Judge") -> str | None:
    """SHA-256 of the file that the judge's numbers were fitted on; None where nothing was fitted here or it is not known."""
    from winnow.judging.calibration import shipped
    from winnow.judging.local import LocalJudge

    return shipped().data_sha256 if isinstance(judge, LocalJudge) else None
