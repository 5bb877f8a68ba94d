"""The logistic map from the formula's sum to a probability, bound to the text processing that it was fitted on."""

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Self

#: Beyond it the exponential would overflow, and the probability is 0 or 1 to the last bit anyway.
_LOGIT_LIMIT = 700.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """p = 1 / (1 + exp(-(slope · s + intercept)))."""

    slope: float
    intercept: float
    #: Version of the formula that gives s.
    formula: str
    #: Version of features and text processing; the numbers mean nothing for another one.
    features_version: str
    #: SHA-256 of the data that it was fitted on.
    data_sha256: str

    def probability(self, s: float) -> float:
        """Probability, 0 to 1, for the sum `s`."""
        logit = min(_LOGIT_LIMIT, max(-_LOGIT_LIMIT, self.slope * s + self.intercept))
        return 1.0 / (1.0 + math.exp(-logit))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a calibration file. A field that is missing raises KeyError: the file ships with the package."""
        data = json.loads(text)
        return cls(
            slope=float(data["slope"]),
            intercept=float(data["intercept"]),
            formula=str(data["formula"]),
            features_version=str(data["features_version"]),
            data_sha256=str(data["fitted_on"]["sha256"]),
        )


@cache
def shipped() -> Calibration:
    """The calibration that ships with the package; read once, a constant."""
    return Calibration.from_json(resources.files("winnow.judging").joinpath("calibration.json").read_text("utf-8"))
