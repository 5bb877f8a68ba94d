"""The logistic map from the formula's sum to a probability, bound to the text processing that it was fitted on."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Self

from winnow.judging.model import sigmoid


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
        return sigmoid(self.slope * s + self.intercept)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the calibration of a model file. A field that is missing raises KeyError: the file ships with the package."""
        data = json.loads(text)
        return cls(
            slope=float(data["formula"]["slope"]),
            intercept=float(data["formula"]["intercept"]),
            formula=str(data["formula"]["version"]),
            features_version=str(data["features_version"]),
            data_sha256=str(data["fitted_on"]["sha256"]),
        )


@cache
def shipped() -> Calibration:
    """The calibration that ships with the package; read once, a constant."""
    return Calibration.from_json(resources.files("winnow.judging").joinpath("model.json").read_text("utf-8"))
