"""What a process must be allowed on the broker, in the words of Kafka's access rules, and how a refusal is told."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from winnow.contracts.errors import WinnowError

#: Where the rules of a production broker are explained.
PAGE = "docs/security.md, section Access rules"


class Operation(StrEnum):
    """What is done, as `kafka-acls` calls it."""

    READ = "Read"
    WRITE = "Write"
    DESCRIBE = "Describe"


class Resource(StrEnum):
    """To what, as the options of `kafka-acls` are called."""

    TOPIC = "topic"
    GROUP = "group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One thing that a process must be allowed."""

    resource: Resource
    #: Name on the broker, prefix included.
    name: str
    operation: Operation

    @property
    def grant(self) -> str:
        """The options of `kafka-acls` that grant it."""
        return f"--operation {self.operation} --{self.resource} {self.name}"

    def __str__(self) -> str:
        return f"{self.operation.lower()} the {self.resource} {self.name}"


class NotAllowed(WinnowError):
    """The broker's access rules do not let this process do what it must; grant what this text names, and it goes on."""

    def __init__(self, missing: Sequence[Right], user: str | None) -> None:
        """`missing` must not be empty; `user` is the name that the process signs in with, None without one."""
        super().__init__(refusal(missing, user))
        self.missing = tuple(missing)


def refusal(missing: Sequence[Right], user: str | None) -> str:
    """What is not allowed, and what to grant."""
    who = "this client" if user is None else f"the user {user!r}"
    what = str(missing[0]) + (f", nor {len(missing) - 1} things more" if len(missing) > 1 else "")
    principal = "the client's principal" if user is None else f"User:{user}"
    granted = "; ".join(right.grant for right in missing)
    return f"the broker does not let {who} {what}; grant it with kafka-acls --add --allow-principal {principal} {granted} ({PAGE})"
