"""What the statistics refuse, each with what to do."""

from winnow.contracts.errors import Permanent


class InvalidLoss(Permanent):
    """A loss must be a finite number between the stream's lo and 1; nothing was folded."""


class InvalidConfig(Permanent):
    """The monitor cannot run with these parameters; correct the one that is named."""


class StateUnreadable(Permanent):
    """The monitor's state cannot be read; hold the fleet and keep the row, never start afresh in its place."""


#: A state that was bet under other terms than its epoch has now.
OTHER_TERMS = (
    "the monitor's state was bet under other parameters, or under the constants of another release:"
    " hold the fleet, and start a new epoch if the change was meant"
)


class EpochEnded(Permanent):
    """The horizon of this epoch is reached and its guarantee ends here; start a new epoch, with a share of the error budget of its own."""
