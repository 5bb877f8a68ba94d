"""What differs between providers: how a request is written and an answer read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from winnow.judging.adapters.plan import Part
from winnow.judging.adapters.transport import Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An answer, validated: what is in it is usable, what is not usable is not in it."""

    #: Probability by entry number.
    scores: Mapping[int, float]
    #: The model as it names itself; None where it does not.
    model: str | None = None
    #: None where the provider does not say.
    input_tokens: int | None = None
    output_tokens: int | None = None


class Wire(Protocol):
    """One provider's protocol."""

    #: Whatever is part of the measured judge besides the layout: the protocol and the wording around the state.
    version: str

    def headers(self) -> Mapping[str, str]:
        """Headers, with the key where there is one."""
        ...

    def body(self, part: Part, model: str) -> bytes:
        """The request for `part`, to `model`."""
        ...

    def read(self, body: bytes, asked: Sequence[int]) -> Reading:
        """The answer to a request about the entries `asked`. Raise `Failed`; an unusable answer to one entry is left out."""
        ...

    def unpaid(self, reply: Reply) -> bool:
        """A refusal (4xx) whose body says that the account has no credit, where the status does not."""
        ...
