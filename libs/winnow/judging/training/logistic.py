"""Logistic regression with signs: a feature that speaks for a source must never speak against one because of a few entries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from winnow.judging.evaluation.metrics import Floats

#: Newton steps; the fits here take about ten.
_STEPS: Final = 100
#: The largest projected gradient at which the fit is done.
_TOLERANCE: Final = 1e-8
#: Armijo's share of the promised decrease, and halvings of a step.
_DECREASE: Final = 1e-4
_HALVINGS: Final = 40
#: Standard deviation below which a feature counts as constant: its weight is 0.
_CONSTANT: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Coefficients on the features as they are."""

    weights: Floats
    intercept: float

    def logits(self, x: Floats) -> Floats:
        """Logit of each row."""
        found: Floats = x @ self.weights + self.intercept
        return found


def fit(x: Floats, y: Floats, weights: Floats, signs: Sequence[int], strength: float) -> Fitted:
    """Minimise strength · sum of weighted log losses + |w|² / 2 on standardised features, each weight on its side of 0.

    A convex problem with bounds, solved by projected Newton steps (Bertsekas 1982, "Projected Newton methods for optimization problems with
    simple constraints", SIAM J. Control Optim. 20): a weight at 0 whose gradient points out of its half-line stays there, the rest take a
    Newton step with backtracking. The intercept is not penalised. Deterministic.

    Args:
        x: features, one row a sample.
        y: labels, 0 or 1.
        weights: weight of each sample.
        signs: for each feature 1 (may only speak for), -1 (may only speak against) or 0 (free).
        strength: weight of the losses beside the penalty (scikit-learn's C).
    """
    mean, scale = x.mean(axis=0), x.std(axis=0)
    used = scale > _CONSTANT
    z = np.column_stack(((x - mean) / np.where(used, scale, 1.0) * used, np.ones(len(x))))
    bound = np.array([*signs, 0])
    penalty = np.array([*np.ones(x.shape[1]), 0.0])
    loss = strength * weights
    beta = np.zeros(z.shape[1])
    value = _objective(beta, z, y, loss, penalty)
    for _ in range(_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(z @ beta, -40.0, 40.0)))
        gradient = z.T @ (loss * (p - y)) + penalty * beta
        held = (beta == 0.0) & (bound * gradient > 0.0)
        if np.abs(gradient[~held]).max(initial=0.0) < _TOLERANCE:
            break
        free = ~held
        curvature = (z[:, free].T * (loss * p * (1.0 - p))) @ z[:, free] + np.diag(penalty[free]) + 1e-12 * np.eye(int(free.sum()))
        step = np.zeros_like(beta)
        step[free] = np.linalg.solve(curvature, gradient[free])
        beta, moved = _stepped(beta, step, gradient, value, bound, (z, y, loss, penalty))
        if moved >= value:
            break
        value = moved
    raw = beta[:-1] / np.where(used, scale, 1.0) * used
    return Fitted(weights=raw, intercept=float(beta[-1] - raw @ mean))


def _stepped(
    beta: Floats, step: Floats, gradient: Floats, value: float, bound: Floats, problem: tuple[Floats, Floats, Floats, Floats]
) -> tuple[Floats, float]:
    """Go along a step, projected, as far as it pays; the point and its value, which is not below the old one where nothing pays."""
    length = 1.0
    for _ in range(_HALVINGS):
        target = beta - length * step
        target[bound * target < 0.0] = 0.0
        moved = _objective(target, *problem)
        if moved <= value - _DECREASE * float(gradient @ (beta - target)):
            return target, moved
        length /= 2.0
    return beta, value


def _objective(beta: Floats, z: Floats, y: Floats, loss: Floats, penalty: Floats) -> float:
    """Weighted log loss and penalty."""
    margin = np.where(y > 0.5, 1.0, -1.0) * (z @ beta)  # noqa: PLR2004  a label
    return float(loss @ np.logaddexp(0.0, -margin) + 0.5 * (penalty * beta) @ beta)


def platt(logits: Floats, y: Floats) -> tuple[float, float]:
    """Slope and intercept that make logits probabilities (Platt 1999), by unpenalised maximum likelihood; the slope is not negative."""
    fitted = fit(logits[:, None], y, np.ones(len(y)), (1,), 1e6)
    return float(fitted.weights[0]), fitted.intercept
