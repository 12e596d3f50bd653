"""What the data of a `parity` fact says: how a golden batch came out of the compiled callable, told in numbers, never in values."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, cast

from compilewatch.wire.report import MAX_TEXT
from compilewatch.wire.text import clip

State = Literal["passed", "failed", "not compared"]
Last = Literal["", "same", "differs", "other weights", "other inputs", "other hardware", "too small"]

STATES: tuple[State, ...] = ("passed", "failed", "not compared")
REFERENCES = ("float64", "float32", "eager")
LASTS: tuple[Last, ...] = ("", "same", "differs", "other weights", "other inputs", "other hardware", "too small")
MAX_GOLDENS = 32
"""Names that one process tells of, and the server keeps of one."""
MAX_NAME, MAX_WHY, MAX_SHORT = 200, MAX_TEXT, 100
MAX_COUNT = (1 << 63) - 1
MAX_ERROR = 1e300
"""Stands for every larger error, infinite ones among them: JSON has no infinity."""


@dataclass(frozen=True, slots=True)
class Parity:
    """One golden batch on one instance. Errors are of the output that came out worst, against its reference."""

    name: str
    state: State
    why: str = ""
    """Why it was not compared, or what is wrong where it is no matter of numbers."""
    region: str = ""
    where: str = ""
    """Which output came out worst."""
    error: float | None = None
    eager_error: float | None = None
    tolerance: float | None = None
    """How large `error` may be."""
    reference: str = ""
    """What both were held against: eager in a higher precision, or eager itself."""
    dtype: str = ""
    outputs: int = 0
    gradients: int = 0
    nonfinite: int = 0
    """NaN and infinite values that the compiled outputs hold."""
    eager_nonfinite: int = 0
    seconds: float | None = None
    last: Last = ""
    """How the outputs stand to those of the last version that passed on this host."""
    last_version: str = ""
    last_change: float | None = None

    @property
    def times(self) -> float | None:
        """The error as a multiple of what is allowed."""
        if self.error is None or self.tolerance is None:
            return None
        return min(self.error / self.tolerance, MAX_ERROR) if self.tolerance else (MAX_ERROR if self.error else 0.0)


def parity_data(told: Parity) -> dict[str, Any]:
    """The fact's data. `ok` and `text` are for servers that know no state: `ok` is false only where the comparison failed."""
    data = {key: _sendable(value) for key, value in asdict(told).items()}
    kept = {key: value for key, value in data.items() if isinstance(value, float) or value}
    return {**kept, "ok": told.state != "failed", "text": parity_words(told)}


def parity_of(data: dict[str, Any]) -> Parity:
    """What the data says, whatever an agent of another release or a stranger put there; one without a state is told by its `ok`."""
    state = data.get("state")
    if state not in STATES:
        state = "passed" if data.get("ok") is True else "failed"
    known = {field.name for field in fields(Parity)} - {"name", "state"}
    return Parity(
        name=_text(data.get("name"), MAX_NAME) or "the compiled model",
        state=cast(State, state),
        **{key: _read(key, data.get(key)) for key in known} | ({} if "state" in data else {"why": _text(data.get("text"), MAX_WHY)}),
    )


def parity_words(told: Parity) -> str:
    """What came out, in one line: by how much, against what tolerance."""
    if told.why or told.error is None or told.tolerance is None or told.times is None:
        return told.why or ("another result than eager" if told.state == "failed" else told.state)
    held = f"eager's own error is {told.eager_error:.2g}" if told.eager_error is not None and told.reference != "eager" else "against eager"
    beyond = f"{_times(told.times)} times " if told.state == "failed" else "within "
    return f"{told.where} is off by {told.error:.2g}, {beyond}the tolerance of {told.tolerance:.2g} ({held})"


def _times(times: float) -> str:
    if times >= 1e6:
        return "over a million"
    return f"{float(f'{times:.3g}'):,.0f}" if times >= 10 else f"{times:.2g}"


def _sendable(value: Any) -> Any:
    if isinstance(value, float):
        return min(value, MAX_ERROR) if value == value else MAX_ERROR
    return value


def _read(key: str, value: Any) -> Any:
    if key in ("error", "eager_error", "tolerance", "seconds", "last_change"):
        return _number(value)
    if key in ("outputs", "gradients", "nonfinite", "eager_nonfinite"):
        return min(max(value, 0), MAX_COUNT) if isinstance(value, int) and not isinstance(value, bool) else 0
    if key == "last":
        return value if value in LASTS else ""
    return _text(value, {"why": MAX_WHY, "region": MAX_NAME, "last_version": MAX_NAME}.get(key, MAX_SHORT))


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return MAX_ERROR
    return min(max(number, 0.0), MAX_ERROR) if math.isfinite(number) else MAX_ERROR


def _text(value: Any, limit: int) -> str:
    return clip(value, limit) if isinstance(value, str) else ""
