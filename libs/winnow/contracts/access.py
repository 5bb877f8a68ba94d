"""Who may do what: roles of API keys and their rights. One table, for the gateway, the console and the commands."""

from collections.abc import Mapping
from enum import StrEnum


class Right(StrEnum):
    """Something that a request asks to be allowed."""

    READ = "read"  # boundaries, entries, originals, runs of the key's fleets
    SUBMIT = "submit"  # boundaries, uploads and runtime events
    OBSERVE = "observe"  # observations for the drift monitor
    AUDIT = "audit"  # the audit trail and dead letters
    OPERATE = "operate"  # hold and release, replay dead letters, erase


class Role(StrEnum):
    """What a key was made for. Within v1 the list only grows; nobody's rights shrink."""

    RUNTIME = "runtime"  # an agent runtime
    GRADER = "grader"  # tells the drift monitor what it found
    AUDITOR = "auditor"  # reads, and changes nothing
    OPERATOR = "operator"  # a person, or a program in his place

    def may(self, right: Right) -> bool:
        """Whether this role has `right`."""
        return right in RIGHTS[self]

    @property
    def spans_fleets(self) -> bool:
        """Keys of this role may cover several fleets: those of people do, those of programs name one tenant."""
        return self in {Role.AUDITOR, Role.OPERATOR}


RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.RUNTIME: frozenset({Right.READ, Right.SUBMIT, Right.OBSERVE}),
    Role.GRADER: frozenset({Right.READ, Right.OBSERVE}),
    Role.AUDITOR: frozenset({Right.READ, Right.AUDIT}),
    Role.OPERATOR: frozenset(Right),
}
