"""Placebo pairs: instances of one healthy version judged against each other, to measure how often
chosen settings raise an alert without a change, and which change they detect.

Algorithm:

1. The units of a period are split at random into two pseudo-arms, half and half in each stratum.
   Both arms run the same version, so every alert is false. A period of `n` units has `n - 1`
   independent contrasts, which bounds the number of splits.
2. Every pair is judged by the judge itself, as a deployment that began with the period.
3. A change is injected into a pair: the call times of the pseudo-candidate are multiplied. The
   smallest size of SIZES that gives ROLL BACK is found by bisection, which assumes that a larger
   change is also detected.

Invariants:

- equal rows, settings and seed give an equal result, in any order of rows;
- a unit is in one arm only, with all of its processes;
- the rows are those of the fleet; only injected call times are simulated.

Source: placebo (negative control) tests; the interval is Clopper and Pearson's.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scipy.special import betaincinv

from dashboard.regressions.judge.evaluate import judge
from dashboard.regressions.judge.inputs import Arm, InstanceMinute
from dashboard.regressions.judge.pooled_estimate import Unit
from dashboard.regressions.judge.process.inputs import InstanceProcessMinute
from dashboard.regressions.judge.settings import Settings
from dashboard.vocabulary.severity import ALERTING_VERDICTS, NOT_ENOUGH_DATA, ROLL_BACK

SIZES = (0.03, 0.05, 0.07, 0.10, 0.12, 0.15, 0.18, 0.20, 0.25, 0.30, 0.40, 0.50, 0.75, 1.0)
"""Sizes of injected changes of call time, ascending."""
DETECTION_SHARE = 0.9
"""Share of the pairs in which the detectable change is detected."""
LEAST_UNITS = 4
"""Two units in each arm. The judge rarely decides on a single instance."""
DRAWS_PER_SPLIT = 20

_CALL_TIMES = ("p50", "p99", "gpu_p50", "gpu_p99", "caller_p50", "caller_p99", "call_seconds")


@dataclass(frozen=True)
class PlaceboPeriod:
    """Rows of one healthy version from `first_minute` to `end_minute`, exclusive."""

    first_minute: int
    end_minute: int
    rows: Sequence[InstanceMinute]
    states: Sequence[InstanceProcessMinute] = ()

    @property
    def units(self) -> set[Unit]:
        """The independent units with calls."""
        return {row.unit for row in self.rows}


@dataclass
class PlaceboTally:
    """Counts of placebo pairs. `alerts` counts pairs with WATCH or ROLL BACK at any minute."""

    pairs: int = 0
    roll_backs: int = 0
    alerts: int = 0
    undecided: int = 0
    """Pairs that were NOT ENOUGH DATA at every minute."""
    sizes: list[float | None] = field(default_factory=list)
    """Smallest detected size of each pair with injected changes; None if none was detected."""

    def as_dict(self) -> dict[str, Any]:
        """The tally as JSON types."""
        return dict(vars(self))

    def add(self, other: PlaceboTally) -> None:
        """Adds the pairs of another tally."""
        self.pairs += other.pairs
        self.roll_backs += other.roll_backs
        self.alerts += other.alerts
        self.undecided += other.undecided
        self.sizes = [*self.sizes, *other.sizes]

    def count_detected(self, size: float) -> int:
        """Number of pairs in which a change of this size is detected."""
        return sum(found is not None and found <= size for found in self.sizes)

    @property
    def detectable(self) -> float | None:
        """The smallest size that DETECTION_SHARE of the pairs detect; None if no size is."""
        least = DETECTION_SHARE * len(self.sizes)
        return next(
            (size for size in SIZES if self.sizes and self.count_detected(size) >= least), None
        )


def split_units(rows: Iterable[InstanceMinute], *, splits: int, seed: str) -> list[frozenset[Unit]]:
    """Distinct pseudo-candidates: half of the units of each stratum, drawn at random from `seed`.
    A split and its mirror image count as one."""
    strata: dict[Unit, set[Any]] = {}
    for row in rows:
        strata.setdefault(row.unit, set()).add(row.stratum)
    alike: dict[str, list[Unit]] = {}
    for unit in sorted(strata, key=str):
        alike.setdefault(str(sorted(map(str, strata[unit]))), []).append(unit)
    units, rng = frozenset(strata), random.Random(seed)  # not for security
    most = min(splits, len(units) - 1)
    found: dict[frozenset[frozenset[Unit]], frozenset[Unit]] = {}
    for _ in range(most * DRAWS_PER_SPLIT):
        if len(found) >= most:
            break
        drawn = frozenset(unit for group in alike.values() for unit in _draw_half(group, rng))
        if drawn and drawn != units:
            found.setdefault(frozenset((drawn, units - drawn)), drawn)
    return list(found.values())


def _draw_half(units: Sequence[Unit], rng: random.Random) -> list[Unit]:
    """Half of the units; the odd one goes to either side."""
    count = len(units) // 2 + (rng.random() < 0.5 if len(units) % 2 else 0)
    return rng.sample(units, count)


def multiply_call_times(row: InstanceMinute, factor: float) -> InstanceMinute:
    """The row with call times multiplied by `factor`: a simulated change. An engine's
    `latency_sum` is wall time, which a slower call does not lengthen."""
    times = {
        name: value * factor for name in _CALL_TIMES if (value := getattr(row, name)) is not None
    }
    if row.bounds is None:
        times["latency_sum"] = row.latency_sum * factor
    return replace(row, **times)


def judge_pair(
    period: PlaceboPeriod, candidate: Collection[Unit], settings: Settings, size: float = 0.0
) -> set[str]:
    """The verdicts of a pair at any minute, with call times of the pseudo-candidate changed by
    `size`."""
    rows = [_assign(row, candidate) for row in period.rows]
    if size:
        rows = [
            multiply_call_times(row, 1.0 + size) if row.arm == "candidate" else row for row in rows
        ]
    outcome = judge(
        rows,
        now_minute=period.end_minute,
        deployed_minute=period.first_minute,
        settings=settings,
        states=[replace(state, arm=_arm(state.unit, candidate)) for state in period.states],
    )
    return {str(verdict) for _, verdict in outcome.transitions}


def _assign(row: InstanceMinute, candidate: Collection[Unit]) -> InstanceMinute:
    arm = _arm(row.unit, candidate)
    return row if row.arm == arm else replace(row, arm=arm)


def _arm(unit: Unit, candidate: Collection[Unit]) -> Arm:
    return "candidate" if unit in candidate else "baseline"


def find_detected_size(
    period: PlaceboPeriod, candidate: Collection[Unit], settings: Settings
) -> float | None:
    """The smallest size of SIZES that gives ROLL BACK; None if the largest one does not."""
    low, high = 0, len(SIZES)
    while low < high:
        middle = (low + high) // 2
        if ROLL_BACK in judge_pair(period, candidate, settings, SIZES[middle]):
            high = middle
        else:
            low = middle + 1
    return SIZES[low] if low < len(SIZES) else None


def tally_period(
    period: PlaceboPeriod, settings: Settings, *, splits: int, seed: str
) -> PlaceboTally:
    """Judges the placebo pairs of a period, and finds the detected size for the first of them."""
    tally = PlaceboTally()
    for candidate in split_units(period.rows, splits=splits, seed=seed):
        verdicts = judge_pair(period, candidate, settings)
        tally.pairs += 1
        tally.roll_backs += ROLL_BACK in verdicts
        tally.alerts += any(kind in verdicts for kind in ALERTING_VERDICTS)
        tally.undecided += verdicts <= {NOT_ENOUGH_DATA}
        if not tally.sizes:
            tally.sizes.append(find_detected_size(period, candidate, settings))
    return tally


def binomial_interval(count: int, whole: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a share. With a count of 0 it is one-sided: 0 of 240 is at most 1 in
    80."""
    if not whole:
        return 0.0, 1.0
    tail = (1.0 - confidence) / (2 if 0 < count < whole else 1)
    low = float(betaincinv(count, whole - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, whole - count, 1.0 - tail)) if count < whole else 1.0
    return low, high
