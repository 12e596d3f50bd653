"""What the data of a `parity` fact says: how a golden batch, or calls drawn from traffic, came out; in numbers, never in values."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, cast

from compilewatch.wire.clip import clip
from compilewatch.wire.messages import MAX_TEXT

State = Literal["passed", "failed", "not compared"]
Kind = Literal["", "shadow", "finite"]
Last = Literal[
    "", "same", "differs", "other weights", "other inputs", "other hardware", "too small"
]

STATES: tuple[State, ...] = ("passed", "failed", "not compared")
KINDS: tuple[Kind, ...] = ("", "shadow", "finite")
"""A golden batch before traffic; calls of traffic that ran eager too; answers that were looked through for NaN and infinities."""
REFERENCES = ("float64", "float32", "eager")
LASTS: tuple[Last, ...] = (
    "",
    "same",
    "differs",
    "other weights",
    "other inputs",
    "other hardware",
    "too small",
)
MAX_GOLDENS = 32
"""Names that one process tells of, and the server keeps of one."""
MAX_NAME, MAX_WHY, MAX_SHORT = 200, MAX_TEXT, 100
MAX_COUNT = (1 << 63) - 1
MAX_ERROR = 1e300
"""Stands for every larger error, infinite ones among them: JSON has no infinity."""
_NUMBERS = (
    "error",
    "eager_error",
    "tolerance",
    "seconds",
    "last_change",
    "relative",
    "compiled_seconds",
    "eager_seconds",
)
_COUNTS = ("outputs", "gradients", "nonfinite", "eager_nonfinite", "samples", "beyond", "timed")


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
    kind: Kind = ""
    samples: int = 0
    """Calls of traffic that were looked at since the process began; of a golden batch none."""
    beyond: int = 0
    """How many of them were beyond the tolerance, or held NaN or infinite values."""
    timed: int = 0
    """How many of them went into the two means below."""
    relative: float | None = None
    """The largest error as a share of the size of its output."""
    compiled_seconds: float | None = None
    eager_seconds: float | None = None
    """What one of them took on average, compiled and eager."""

    @property
    def times(self) -> float | None:
        """The error as a multiple of what is allowed."""
        if self.error is None or self.tolerance is None:
            return None
        return (
            min(self.error / self.tolerance, MAX_ERROR)
            if self.tolerance
            else (MAX_ERROR if self.error else 0.0)
        )


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
        **{key: _read(key, data.get(key)) for key in known}
        | ({} if "state" in data else {"why": _text(data.get("text"), MAX_WHY)}),
    )


def parity_words(told: Parity) -> str:
    """What came out, in one line: by how much, against what tolerance."""
    if told.kind and told.state != "not compared":
        return _drawn_words(told)
    if told.why or told.error is None or told.tolerance is None or told.times is None:
        return told.why or ("another result than eager" if told.state == "failed" else told.state)
    held = (
        f"eager's own error is {told.eager_error:.2g}"
        if told.eager_error is not None and told.reference != "eager"
        else "against eager"
    )
    beyond = f"{_times(told.times)} times " if told.state == "failed" else "within "
    return f"{told.where} is off by {told.error:.2g}, {beyond}the tolerance of {told.tolerance:.2g} ({held})"


def _drawn_words(told: Parity) -> str:
    """The same of drawn calls."""
    one = told.samples == 1
    calls = f"{told.samples:,} sampled call{'' if one else 's'}"
    if told.kind == "finite":
        where = told.where or "the answer"
        return (
            f"{where} holds NaN or infinite values in {told.beyond:,} of {calls}"
            if told.beyond
            else f"none in {calls}"
        )
    beyond = f"{calls} agree{'s' if one else ''}"
    if told.beyond:
        beyond = (
            f"{told.beyond:,} of {calls} {'is' if told.beyond == 1 else 'are'} beyond the tolerance"
        )
    if told.why or told.error is None or told.tolerance is None:
        return f"{beyond}: {told.why}" if told.why else beyond
    return f"{beyond}; at most {told.where} is off by {told.error:.2g}, with a tolerance of {told.tolerance:.2g} against eager"


def _times(times: float) -> str:
    if times >= 1e6:
        return "over a million"
    return f"{float(f'{times:.3g}'):,.0f}" if times >= 10 else f"{times:.2g}"


def _sendable(value: Any) -> Any:
    if isinstance(value, float):
        return min(value, MAX_ERROR) if value == value else MAX_ERROR
    return value


def _read(key: str, value: Any) -> Any:
    if key in _NUMBERS:
        return _number(value)
    if key in _COUNTS:
        return (
            min(max(value, 0), MAX_COUNT)
            if isinstance(value, int) and not isinstance(value, bool)
            else 0
        )
    if key == "last":
        return value if value in LASTS else ""
    if key == "kind":
        return value if value in KINDS else ""
    return _text(
        value, {"why": MAX_WHY, "region": MAX_NAME, "last_version": MAX_NAME}.get(key, MAX_SHORT)
    )


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
