"""A monitor's state as text: what is read is what was written, to the bit, or an error."""

import hashlib
import json
import math
from typing import Any, Final

from winnow.assurance.blocks import Block
from winnow.assurance.config import MonitorConfig
from winnow.assurance.monitor import State
from winnow.assurance.refusals import OTHER_TERMS, StateUnreadable

#: Version of the text's form.
SCHEMA: Final = 1
#: Characters of the longest text that is read: a state of a million blocks would not come near it.
LONGEST: Final = 100_000
#: Hexadecimal digits of the checksum.
_DIGITS: Final = 16


def dump(state: State, *, stream: str = "", epoch: int = 1) -> str:
    """The state as one line of JSON with a checksum. Floats are their shortest exact decimals.

    `stream` and `epoch` name what it was bet on; `load` compares them.
    """
    body = json.dumps({"schema": SCHEMA, "stream": stream, "epoch": epoch, **_values(state)}, separators=(",", ":"), allow_nan=False)
    return f'{body[:-1]},"sum":"{_checksum(body)}"}}'


def load(text: str, config: MonitorConfig | None = None, *, stream: str | None = None, epoch: int | None = None) -> State:
    """Read what `dump` wrote.

    Where they are given, the state must belong to this configuration, stream and epoch.

    Raises:
        StateUnreadable: it does not, was altered, or is no state at all. Hold the fleet and keep the row; never start afresh instead.
    """
    try:
        return _load(text, config, stream, epoch)
    except StateUnreadable:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as exc:
        msg = f"the monitor's state cannot be read ({type(exc).__name__}); hold the fleet and keep the row, never start afresh in its place"
        raise StateUnreadable(msg) from None


def _load(text: str, config: MonitorConfig | None, stream: str | None, epoch: int | None) -> State:
    """Read, or fail in any way that malformed text can."""
    if len(text) > LONGEST:
        raise StateUnreadable("the monitor's state is too long to be one; hold the fleet and keep the row")
    value = json.loads(text)
    said = value.pop("sum")
    if said != _checksum(json.dumps(value, separators=(",", ":"))):
        raise StateUnreadable("the monitor's state fails its checksum; hold the fleet and keep the row")
    if value.pop("schema") != SCHEMA:
        raise StateUnreadable(
            "the monitor's state has another version than this program knows; hold the fleet until the program is updated"
        )
    named, numbered = value.pop("stream"), value.pop("epoch")
    if stream is not None and named != stream:
        raise StateUnreadable("the monitor's state belongs to another stream; hold the fleet")
    if epoch is not None and numbered != epoch:
        raise StateUnreadable("the monitor's state belongs to another epoch; hold the fleet")
    state = _state(value)
    if config is not None and state.config != config.fingerprint:
        raise StateUnreadable(OTHER_TERMS)
    return state


def _values(state: State) -> dict[str, Any]:
    """What JSON can hold."""
    return {
        "config": state.config,
        "n": state.n,
        "capital": state.capital,
        "drift": state.drift,
        "spread": state.spread,
        "rise": state.rise,
        "cash": state.cash,
        "evidence": state.evidence,
        "peak": state.peak,
        "alarm_at": state.alarm_at,
        "blocks": [_short(block) for block in state.blocks],
        "open": (state.open_total, state.open_squares),
        "warn": None if state.warn is None else _values(state.warn),
    }


def _state(value: dict[str, Any]) -> State:
    """The state of `_values`."""
    total, squares = _floats(value["open"])
    warn = value["warn"]
    return State(
        config=str(value["config"]),
        n=_count(value["n"]),
        capital=_floats(value["capital"]),
        drift=_floats(value["drift"]),
        spread=_floats(value["spread"]),
        rise=_floats(value["rise"]),
        cash=_float(value["cash"]),
        evidence=_float(value["evidence"]),
        peak=_float(value["peak"]),
        alarm_at=None if value["alarm_at"] is None else _count(value["alarm_at"]),
        blocks=tuple(_block(*parts) for parts in value["blocks"]),
        open_total=total,
        open_squares=squares,
        warn=None if warn is None else _state(warn),
    )


def _short(block: Block) -> list[float]:
    """A block in half the characters: whole sums without their ".0", and the squares only where they differ from the losses."""
    parts = (block.total,) if block.total == block.squares else (block.total, block.squares)
    return [block.n, *(int(v) if v.is_integer() and repr(v) != "-0.0" else v for v in parts)]


def _block(n: Any, total: Any, squares: Any = None) -> Block:  # noqa: ANN401  whatever JSON can hold
    """The block of `_short`."""
    return Block(_count(n), _float(total), _float(total if squares is None else squares))


def _floats(values: Any) -> tuple[float, ...]:  # noqa: ANN401  whatever JSON can hold
    """Finite numbers."""
    return tuple(_float(v) for v in values)


def _float(value: Any) -> float:  # noqa: ANN401  whatever JSON can hold
    """A finite number."""
    number = float(value)
    if isinstance(value, str) or not math.isfinite(number):
        raise ValueError(value)
    return number


def _count(value: Any) -> int:  # noqa: ANN401  whatever JSON can hold
    """A whole number from 0 on."""
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def _checksum(body: str) -> str:
    """Digits over the text without its checksum."""
    return hashlib.sha256(body.encode()).hexdigest()[:_DIGITS]
