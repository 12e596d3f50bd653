"""Payback of compilation: GPU-seconds spent and saved, based on reported eager durations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dashboard.common import clock
from dashboard.fleet.metrics.break_even import Savings, compute_break_even, estimate_savings
from dashboard.fleet.selectors.compilations.compilations import (
    NO_RECORDINGS,
    Recordings,
    VersionCompilation,
)
from dashboard.fleet.selectors.instances.cold_starts import ProcessStart
from dashboard.fleet.selectors.versions.compiled_share import SeriesCalls
from dashboard.vocabulary import numbers

MOSTLY = 0.8
ON_GPU = "GPU-seconds"
SECOND = (
    ", each right after the compiled call; on a CPU, short eager calls benefit from warm caches"
)


@dataclass(frozen=True)
class LedgerEntry:
    """One line of the ledger; `value` is in GPU-seconds, None if unknown."""

    name: str
    value: float | None
    how: str
    estimate: bool = False
    total: bool = False

    @property
    def text(self) -> str:
        """The signed value, or "not known"."""
        if self.value is None:
            return "not known"
        return f"{'+' if self.value > 0 else ''}{numbers.number(round(self.value, 1))}"


@dataclass(frozen=True)
class Payback:
    """The ledger. Break-even is in calls; None without a reported eager run, or if compiled calls
    are not faster."""

    entries: list[LedgerEntry] = field(default_factory=list)
    unit: str = ON_GPU
    spent: float = 0.0
    saved: float | None = None
    net: float | None = None
    break_even: float | None = None
    calls: int = 0
    covered: float = 0.0
    reference_at: datetime | None = None
    reference: str = ""

    @property
    def verdict(self) -> str:
        """One line for the header."""
        if self.saved is None:
            return "no eager run reported"
        if self.break_even is None:
            return "compiled calls are not faster"
        told = f"after {numbers.number(round(self.break_even))} calls"
        return (
            f"paid back {told}"
            if self.calls >= self.break_even
            else f"pays back {told}, {numbers.number(self.calls)} so far"
        )


def compute_payback(
    events: Iterable[VersionCompilation],
    own: Sequence[ProcessStart],
    calls: Sequence[SeriesCalls],
    everyone: Sequence[SeriesCalls],
    shadows: int = 0,
    recordings: Recordings = NO_RECORDINGS,
) -> Payback:
    """Assumes that compilations and calls occupy all GPUs of their process for their whole
    duration. `shadows` is the number of eager shadow calls."""
    gpus = {one.id: one.gpus for one in own}
    on_gpu = any(gpus.values())
    held = {id: max(1, count) for id, count in gpus.items()} if not on_gpu else gpus
    first = again = 0.0
    kept: float | None = None
    for event in events:
        weight = held.get(event.instance_id, 1)
        if event.kind == "recompile":
            again += event.seconds * weight
        else:
            first += event.seconds * weight
        if event.saved is not None:
            kept = (kept or 0.0) + event.saved * weight
    each = max(held.values(), default=1) or 1
    counted = [one for one in calls if not one.eager]
    saved = estimate_savings(counted, [one for one in everyone if one.eager])
    unit = ON_GPU if on_gpu else "process-seconds"
    spent = [
        LedgerEntry("Spent compiling, first compilations and autotuning", -first, "measured"),
        LedgerEntry("Spent recompiling", -again, "measured"),
    ]
    if recordings.graphs:
        spent.append(
            LedgerEntry("Spent recording CUDA graphs", -recordings.seconds * each, "measured")
        )
    return _ledger(spent, kept, saved, each, sum(one.calls for one in counted), unit, shadows)


def _ledger(
    measured: list[LedgerEntry],
    kept: float | None,
    saved: Savings | None,
    gpus: int,
    calls: int,
    unit: str,
    shadows: int,
) -> Payback:
    spent = -sum(entry.value or 0.0 for entry in measured)
    entries = [
        *measured,
        LedgerEntry(
            "Saved by caches",
            kept,
            "torch’s estimate" if kept is not None else "not reported by torch",
            True,
        ),
    ]
    if saved is None:
        entries.append(
            LedgerEntry(
                "Saved by compiled calls",
                None,
                "no eager run of the same region, shape and GPU was reported",
            )
        )
        return Payback(entries, unit, spent, calls=calls)
    value, low, high = (one * gpus for one in (saved.seconds, saved.low, saved.high))
    at = clock.at_minute(saved.newest)
    where = " on the GPU" if saved.on_gpu == saved.calls else ""
    each = f"{numbers.duration(abs(saved.seconds / saved.calls))}{where}"
    verb = "Saved" if value >= 0 else "Lost"
    name = f"{verb}, {each} per call on {numbers.number(saved.calls)} calls"
    spread = f"estimate, {_bound(low)} to {_bound(high)}"
    entries.append(LedgerEntry(name, value, spread, True))
    net = value - spent
    entries.append(
        LedgerEntry(
            "Net", net, f"estimate, {_bound(low - spent)} to {_bound(high - spent)}", True, True
        )
    )
    return Payback(
        entries=entries,
        unit=unit,
        spent=spent,
        saved=value,
        net=net,
        break_even=compute_break_even(spent, value, saved.calls),
        calls=saved.calls,
        covered=saved.calls / calls if calls else 0.0,
        reference_at=at,
        reference=_reference(saved, shadows, on_cpu=unit != ON_GPU),
    )


def _bound(value: float) -> str:
    """A bound with the precision of the value, so that the value lies between its bounds."""
    return numbers.number(round(value, 1) if abs(value) < 100 else round(value))


def _reference(saved: Savings, shadows: int, *, on_cpu: bool) -> str:
    """The eager calls behind the estimate. The reported number of shadow calls can lag a little."""
    nearly_all = shadows >= MOSTLY * saved.reference_calls
    told = (
        f"{numbers.number(saved.reference_calls)} {'shadow' if nearly_all else 'eager'} calls of "
        f"{', '.join(saved.versions[:3])}"
    )
    if nearly_all:
        return told + (SECOND if on_cpu else "")
    return (
        told
        if not shadows
        else f"{told}, {numbers.number(min(shadows, saved.reference_calls))} of them shadow calls"
    )
