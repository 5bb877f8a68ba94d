"""Judges by name, for commands that ask them without a service."""

from typing import TYPE_CHECKING

from winnow.contracts.envelope import explain
from winnow.contracts.errors import Permanent

if TYPE_CHECKING:
    from winnow.judging.adapters.registry import Judges
    from winnow.judging.port import Judge


class NoSuchJudge(Permanent):
    """There is no judge of that name."""


class BadJudges(Permanent):
    """WINNOW_JUDGES says something that no judge can be built from."""


def registered() -> "Judges":
    """The judges that WINNOW_JUDGES and its variables name, and the local one. Opens nothing; close them when done. Raise `BadJudges`."""
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from winnow.judging.adapters.registry import build
    from winnow.judging.adapters.specs import JudgesSettings

    try:
        return build(JudgesSettings())
    except ValidationError as exc:
        raise BadJudges(f"WINNOW_JUDGES: {explain(exc)}") from None
    except SettingsError:
        raise BadJudges("WINNOW_JUDGES is not a JSON object of judges by name") from None


def named(judges: "Judges", name: str) -> "Judge":
    """The judge of that name. Raise `NoSuchJudge`, which lists the names."""
    found = judges.by_name.get(name)
    if found is None:
        there = ", ".join(sorted(judges.by_name))
        msg = f"there is no judge {name[:80]!r}; there are {there}; WINNOW_JUDGES names others"
        raise NoSuchJudge(msg)
    return found


def trained_on(judge: "Judge") -> str | None:
    """SHA-256 of the file that the judge's numbers were fitted on; None where nothing was fitted here or it is not known."""
    from winnow.judging.calibration import shipped
    from winnow.judging.local import LocalJudge

    return shipped().data_sha256 if isinstance(judge, LocalJudge) else None
