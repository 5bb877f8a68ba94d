"""Judges by name, for commands that ask them without a service."""

from typing import TYPE_CHECKING

from winnow.contracts.envelope import explain
from winnow.contracts.errors import Permanent

if TYPE_CHECKING:
    from winnow.judging.adapters.registry import Judges
    from winnow.judging.adapters.specs import JudgesSettings
    from winnow.judging.port import Judge


class NoSuchJudge(Permanent):
    """There is no judge of that name."""


class BadJudges(Permanent):
    """WINNOW_JUDGES says something that no judge can be built from."""


def registered() -> "Judges":
    """The judges that WINNOW_JUDGES and its variables name, and the local one. Opens nothing; close them when done. Raise `BadJudges`."""
    from winnow.judging.adapters.registry import build

    return build(settings())


def settings() -> "JudgesSettings":
    """What WINNOW_JUDGES and its variables say. Raise `BadJudges`."""
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from winnow.judging.adapters.specs import JudgesSettings

    try:
        return JudgesSettings()
    except ValidationError as exc:
        raise BadJudges(f"WINNOW_JUDGES: {explain(exc)}") from None
    except SettingsError:
        raise BadJudges("WINNOW_JUDGES is not a JSON object of judges by name") from None


def named(judges: "Judges", name: str) -> "Judge":
    """The judge of that name; `formula` is the training-free one. Raise `NoSuchJudge`, which lists the names."""
    from winnow.judging.formula import FormulaJudge

    found = judges.by_name.get(name) or (FormulaJudge() if name == "formula" else None)
    if found is None:
        there = ", ".join(sorted({*judges.by_name, "formula"}))
        msg = f"there is no judge {name[:80]!r}; there are {there}; WINNOW_JUDGES names others"
        raise NoSuchJudge(msg)
    return found


def input_price(name: str) -> float | None:
    """US dollars that a judge takes for the input of a million tokens, each of its requests counted; None where it is not known.

    An ensemble takes what its members take together.
    """
    from winnow.judging.adapters.registry import KNOWN_PRICES
    from winnow.judging.adapters.specs import AnthropicSpec, EnsembleSpec, JudgesSettings

    specs = JudgesSettings().judges

    def of(judge: str) -> float | None:
        spec = specs.get(judge)
        if spec is None:
            return 0.0
        if isinstance(spec, EnsembleSpec):
            parts = [of(member) for member in spec.members]
            return None if None in parts else sum(part for part in parts if part is not None)
        known = [KNOWN_PRICES[model].input_usd for model in spec.asked_models if model in KNOWN_PRICES]
        price = spec.price_input if spec.price_input is not None else max(known, default=None)
        votes = spec.votes if isinstance(spec, AnthropicSpec) else 1
        return None if price is None else price * votes

    return of(name)


def trained_on(judge: "Judge") -> str | None:
    """SHA-256 of the file that the judge's numbers were fitted on; None where nothing was fitted here or it is not known."""
    from winnow.judging.calibration import shipped
    from winnow.judging.formula import FormulaJudge
    from winnow.judging.local import LocalJudge

    if isinstance(judge, LocalJudge):
        return judge.model.data_sha256
    return shipped().data_sha256 if isinstance(judge, FormulaJudge) else None
