"""Numerics results: the data of a `parity` fact, for golden batches and sampled calls.

It holds numbers and never values of the job.
"""

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
"""Empty: a golden batch before traffic.

Otherwise sampled calls: calls that also ran eager, or answers checked for NaN and infinite values.
"""
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
"""Maximum number of names that one process reports and the server keeps of one process."""
MAX_NAME, MAX_WHY, MAX_SHORT = 200, MAX_TEXT, 100
MAX_COUNT = (1 << 63) - 1
MAX_ERROR = 1e300
"""Represents every larger error, including infinity, which JSON lacks."""
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
    """One golden batch on one instance.

    Errors are those of the worst output, relative to its reference.
    """

    name: str
    state: State
    why: str = ""
    """Why there was no comparison, or the problem if it is not numeric."""
    region: str = ""
    where: str = ""
    """Name of the worst output."""
    error: float | None = None
    eager_error: float | None = None
    tolerance: float | None = None
    """The largest allowed `error`."""
    reference: str = ""
    """Reference of the comparison: eager in a higher precision, or eager."""
    dtype: str = ""
    outputs: int = 0
    gradients: int = 0
    nonfinite: int = 0
    """Number of NaN and infinite values in the compiled outputs."""
    eager_nonfinite: int = 0
    seconds: float | None = None
    last: Last = ""
    """Comparison with the outputs of the last version that passed on this host."""
    last_version: str = ""
    last_change: float | None = None
    kind: Kind = ""
    samples: int = 0
    """Sampled calls since the start of the process; 0 for a golden batch."""
    beyond: int = 0
    """Sampled calls beyond the tolerance, or with NaN or infinite values."""
    timed: int = 0
    """Sampled calls that the two means below include."""
    relative: float | None = None
    """The largest error relative to the size of its output."""
    compiled_seconds: float | None = None
    eager_seconds: float | None = None
    """Mean duration of a sampled call, compiled and eager."""

    @property
    def times(self) -> float | None:
        """The error as a multiple of the tolerance."""
        if self.error is None or self.tolerance is None:
            return None
        return (
            min(self.error / self.tolerance, MAX_ERROR)
            if self.tolerance
            else (MAX_ERROR if self.error else 0.0)
        )


def parity_data(parity: Parity) -> dict[str, Any]:
    """Builds the fact's data.

    `ok` and `text` are for servers that do not know `state`; `ok` is false only if the comparison
    failed.
    """
    data = {key: _sendable(value) for key, value in asdict(parity).items()}
    present = {key: value for key, value in data.items() if isinstance(value, float) or value}
    return {**present, "ok": parity.state != "failed", "text": parity_words(parity)}


def parity_of(data: dict[str, Any]) -> Parity:
    """Reads the data defensively: its sender may be of any release.

    Data without a state counts by its `ok`.
    """
    state = data.get("state")
    if state not in STATES:
        state = "passed" if data.get("ok") is True else "failed"
    names = {field.name for field in fields(Parity)} - {"name", "state"}
    return Parity(
        name=_text(data.get("name"), MAX_NAME) or "the compiled model",
        state=cast(State, state),
        **{key: _read(key, data.get(key)) for key in names}
        | ({} if "state" in data else {"why": _text(data.get("text"), MAX_WHY)}),
    )


def parity_words(parity: Parity) -> str:
    """Describes the result in one line: the error and the tolerance."""
    if parity.kind and parity.state != "not compared":
        return _sample_words(parity)
    if parity.why or parity.error is None or parity.tolerance is None or parity.times is None:
        return parity.why or (
            "another result than eager" if parity.state == "failed" else parity.state
        )
    compared_with = (
        f"eager's own error is {parity.eager_error:.2g}"
        if parity.eager_error is not None and parity.reference != "eager"
        else "against eager"
    )
    beyond = f"{_times(parity.times)} times " if parity.state == "failed" else "within "
    return (
        f"{parity.where} is off by {parity.error:.2g}, "
        f"{beyond}the tolerance of {parity.tolerance:.2g} ({compared_with})"
    )


def _sample_words(parity: Parity) -> str:
    """Describes the result of sampled calls."""
    is_single = parity.samples == 1
    calls = f"{parity.samples:,} sampled call{'' if is_single else 's'}"
    if parity.kind == "finite":
        where = parity.where or "the answer"
        return (
            f"{where} holds NaN or infinite values in {parity.beyond:,} of {calls}"
            if parity.beyond
            else f"none in {calls}"
        )
    beyond = f"{calls} agree{'s' if is_single else ''}"
    if parity.beyond:
        verb = "is" if parity.beyond == 1 else "are"
        beyond = f"{parity.beyond:,} of {calls} {verb} beyond the tolerance"
    if parity.why or parity.error is None or parity.tolerance is None:
        return f"{beyond}: {parity.why}" if parity.why else beyond
    return (
        f"{beyond}; {parity.where} is off by at most {parity.error:.2g}, with a tolerance of "
        f"{parity.tolerance:.2g} against eager"
    )


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
