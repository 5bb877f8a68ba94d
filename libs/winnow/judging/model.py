"""The source model: two logistic heads, "an output says it" and "the previous summary says it", and the probability that either does."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final, Self

#: Version of the computation below; stated in the files that belong to it.
MODEL_VERSION: Final = "2"
#: Beyond it the exponential would overflow, and the probability is 0 or 1 to the last bit anyway.
_LOGIT_LIMIT: Final = 700.0
#: Nearest to 0 and 1 that a probability is taken before its logit.
_EDGE: Final = 1e-12
#: The feature that is 0 where no part of M shares a word with the entry: then M cannot be its source.
OVERLAP: Final = "prev_stretch"


def sigmoid(z: float) -> float:
    """1 / (1 + exp(-z)), for any z."""
    return 1.0 / (1.0 + math.exp(-min(_LOGIT_LIMIT, max(-_LOGIT_LIMIT, z))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A logistic regression on some features: sigmoid(intercept + sum of weight · feature)."""

    intercept: float
    #: Weight of each feature, in the order in which the terms are added: it fixes the last bit.
    weights: Mapping[str, float]

    def logit(self, features: Mapping[str, float]) -> float:
        """The sum. A missing feature raises KeyError; one that is not finite makes the sum not finite."""
        total = self.intercept
        for name, weight in self.weights.items():
            total += weight * features[name]
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Probabilities of one entry before they are joined and calibrated."""

    env: float
    prev: float

    @property
    def either(self) -> float:
        """1 - (1 - env)(1 - prev): a source is either of the two."""
        return 1.0 - (1.0 - self.env) * (1.0 - self.prev)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceModel:
    """Coefficients with what they are bound to.

    p = sigmoid(slope · logit(1 - (1 - p_env)(1 - p_prev)) + intercept). The heads are apart because the labels are, and because then an
    entry whose support by M is taken away falls back to what outputs say of it, by construction.
    """

    env: Head
    prev: Head
    slope: float
    intercept: float
    #: Version of the features that the coefficients mean something for.
    features_version: str
    #: Named thresholds: `default` and `published-recall`.
    points: Mapping[str, float]
    #: SHA-256 of the data that it was fitted on.
    data_sha256: str

    @property
    def version(self) -> str:
        """What changes a score changes this."""
        return f"model-{MODEL_VERSION}/features-{self.features_version}/data-{self.data_sha256[:8]}"

    def parts(self, features: Mapping[str, float]) -> Parts | None:
        """What each head says; None where a feature is missing or not finite."""
        try:
            env, prev = self.env.logit(features), self.prev.logit(features)
            overlap = features[OVERLAP]
        except KeyError:
            return None
        if not math.isfinite(env) or not math.isfinite(prev):
            return None
        return Parts(env=sigmoid(env), prev=sigmoid(prev) if overlap > 0.0 else 0.0)

    def probability(self, features: Mapping[str, float]) -> float | None:
        """Probability, 0 to 1, that the entry has a source; None where a feature is missing or not finite."""
        parts = self.parts(features)
        if parts is None:
            return None
        return sigmoid(self.slope * logit(parts.either) + self.intercept)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a model file. Raise ValueError for another version of the computation, KeyError where something is missing."""
        data = json.loads(text)
        if str(data["model"]) != MODEL_VERSION:
            msg = f"a model file of version {data['model']}, this Winnow computes version {MODEL_VERSION}; train it again"
            raise ValueError(msg)
        return cls(
            env=_head(data["env"]),
            prev=_head(data["prev"]),
            slope=float(data["calibration"]["slope"]),
            intercept=float(data["calibration"]["intercept"]),
            features_version=str(data["features_version"]),
            points=MappingProxyType({str(name): float(tau) for name, tau in data["points"].items()}),
            data_sha256=str(data["fitted_on"]["sha256"]),
        )

    def as_json(self) -> dict[str, Any]:
        """What `from_json` reads, without what training adds about its data."""
        return {
            "model": MODEL_VERSION,
            "features_version": self.features_version,
            "env": {"intercept": self.env.intercept, "weights": dict(self.env.weights)},
            "prev": {"intercept": self.prev.intercept, "weights": dict(self.prev.weights)},
            "calibration": {"slope": self.slope, "intercept": self.intercept},
            "points": dict(self.points),
            "fitted_on": {"sha256": self.data_sha256},
        }


def logit(p: float) -> float:
    """The inverse of the sigmoid, bounded."""
    p = min(1.0 - _EDGE, max(_EDGE, p))
    return math.log(p / (1.0 - p))


def _head(data: Mapping[str, Any]) -> Head:
    """One head of a file."""
    weights = {str(name): float(weight) for name, weight in data["weights"].items()}
    return Head(intercept=float(data["intercept"]), weights=MappingProxyType(weights))


@cache
def shipped() -> SourceModel:
    """The model that ships with the package; read once, a constant."""
    return SourceModel.from_json(resources.files("winnow.judging").joinpath("model.json").read_text("utf-8"))
