"""Recovery after an alarm: evidence, one fresh loss at a time, that the risk is below the budget again.

The mirror of the monitor: H0 is now E[loss | past] >= alpha, a bet's factor is 1 - theta/(1 - alpha)·(x - alpha), and evidence of 1/delta
accepts the recovery with an error of at most delta, at every look. A loss x of [lo, 1] becomes (1 - x)/(1 - lo) against
(1 - alpha)/(1 - lo), so configuration, state and text are the monitor's own; its `alarm_at` is the unit that accepted.
"""

from winnow.assurance import monitor
from winnow.assurance.config import MonitorConfig
from winnow.assurance.monitor import State


def recovery_config(watched: MonitorConfig, *, delta: float, alpha: float | None = None) -> MonitorConfig:
    """The configuration that re-certifies what `watched` watched; `alpha` below its budget asks for a margin (hysteresis).

    Raises:
        InvalidConfig: alpha or delta is out of range.
    """
    below = watched.alpha if alpha is None else alpha
    return MonitorConfig(alpha=(1.0 - below) / (1.0 - watched.lo), delta=delta, method="recovery")


def recover(config: MonitorConfig, watched: MonitorConfig, state: State, loss: float) -> State:
    """Fold one loss of the watched stream, drawn after the alarm.

    Raises:
        InvalidLoss: the loss is no number in [lo, 1]; nothing was folded.
        StateUnreadable: the state belongs to another configuration.
    """
    x = monitor.checked(watched, loss)
    return monitor.update(config, state, (1.0 - x) / (1.0 - watched.lo))
