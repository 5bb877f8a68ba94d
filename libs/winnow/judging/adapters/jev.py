"""The Jev decision API (TypeSafe direct, OpenRouter Decisions, what else speaks it): a yes/no question an entry on one shared state."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import SecretStr

from winnow.judging.adapters import layout, strict_json
from winnow.judging.adapters.failures import Failed, Failure
from winnow.judging.adapters.plan import Part
from winnow.judging.adapters.transport import Reply
from winnow.judging.adapters.wire import Reading

#: A yes/no question; its answer's probability of yes has the same name.
_NOUL: Final = "noul"


class JevWire:
    """The protocol; see `wire.Wire`."""

    version = f"jev/layout-{layout.LAYOUT_VERSION}"

    def __init__(self, key: SecretStr | None, *, state_as_text: bool = False, extra_headers: Mapping[str, str] | None = None) -> None:
        """`state_as_text`: the state as one string, for models of this protocol that take no object (it is another judge then)."""
        self._key = key
        self._as_text = state_as_text
        self._headers = dict(extra_headers or {})
        if state_as_text:
            self.version = f"jev-text/layout-{layout.LAYOUT_VERSION}"

    def headers(self) -> Mapping[str, str]:
        """The key as a bearer token."""
        key = {} if self._key is None else {"authorization": f"Bearer {self._key.get_secret_value()}"}
        return {**self._headers, **key}

    def body(self, part: Part, model: str) -> bytes:
        """State and questions."""
        state: Any = layout.state(part.material, part.items, part.passages)
        questions = {layout.entry_id(i.n): {"type": _NOUL, "instructions": layout.question(i.n)} for i in part.items}
        return layout.encoded({"model": model, "state": layout.encoded(state) if self._as_text else state, "questions": questions}).encode()

    def read(self, body: bytes, asked: Sequence[int]) -> Reading:
        """Probabilities of the entries that were asked about; names that were not are passed over."""
        found = strict_json.loads(body)
        answers = strict_json.field(found, "answers")
        if not isinstance(answers, strict_json.Fields):
            raise Failed(Failure.MALFORMED)
        scores = {n: p for n in asked if (p := _answer(strict_json.field(answers, layout.entry_id(n)))) is not None}
        usage = strict_json.field(found, "usage")
        tokens = usage if isinstance(usage, strict_json.Fields) else strict_json.Fields()
        return Reading(
            scores=scores,
            model=strict_json.name(strict_json.field(found, "model")),
            input_tokens=strict_json.count(strict_json.field(tokens, "input_tokens")),
            output_tokens=strict_json.count(strict_json.field(tokens, "output_tokens")),
        )

    def unpaid(self, reply: Reply) -> bool:  # noqa: ARG002  the port's; this protocol says it by status alone
        """Never: 402 says so."""
        return False


def _answer(value: object) -> float | None:
    """The probability of yes of one answer; None where it is no answer to a yes/no question. `type` may be absent."""
    if not isinstance(value, strict_json.Fields) or "type" in value.repeated or value.get("type", _NOUL) != _NOUL:
        return None
    return strict_json.probability(strict_json.field(value, _NOUL))
