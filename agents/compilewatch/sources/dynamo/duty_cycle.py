"""Duty cycle of the guard-lookup hook: when the hook is installed and counts lookups.

Duty-cycled sampling with a cost limit. After a compilation the hook counts all the time for
`SETTLING_SECONDS`, because the first calls show whether new code runs compiled. Afterwards the hook
counts for one second of every ten. If the measured cost exceeds `MAX_COST_SHARE` of the calls' own
time, the cycle becomes sparser: the counting time shrinks to one second, then the period grows.

Invariants: counting time / period <= MAX_COST_SHARE / cost; one counting interval lasts at least
one second.
Fewer than `MIN_LOOKUPS` lookups in an interval cost 0. All methods run on the agent's thread.
Source: this repository's benchmark `tests/bench/bench_guard_lookups.py`."""

from __future__ import annotations

SETTLING_SECONDS = 20.0
PERIOD_SECONDS, COUNTING_SECONDS = 10.0, 1.0
LOOKUP_SECONDS = 1.1e-6
"""Cost of the hook for one lookup with cold CPU caches after a CUDA graph launch, on an H200. With
warm caches the cost is 0.44 us."""
MAX_COST_SHARE = 0.0005
"""Limit of the counting cost as a share of the calls' own time. Call counting and timing use the
rest of the agent's 1% limit."""

MIN_LOOKUPS = 1000
"""Below this number of lookups in an interval the cost is ignored: the total is negligible, and
each lookup of a rarely called region is needed."""


class DutyCycle:
    """Intervals with and without counting. All times are of one monotonic clock."""

    def __init__(self, now: float) -> None:
        self.cost_share = 0.0
        """Cost of the last counting interval as a share of the calls' time in that interval."""
        self._last_compile = self._period_start = now

    def restart_settling(self, now: float) -> None:
        """Restart the settling time: a compilation may change which code runs compiled."""
        self._last_compile = now

    def update_cost(self, lookups: int, busy: float) -> None:
        """Update the cost: the current interval has `lookups` lookups in `busy` seconds of
        calls."""
        if lookups < MIN_LOOKUPS:
            self.cost_share = 0.0
        elif busy > 0:
            self.cost_share = lookups * LOOKUP_SECONDS / busy

    def should_count(self, now: float) -> bool:
        """True if lookups must be counted now."""
        counting, period = self.compute_durations(now)
        if now - self._period_start >= period:
            self._period_start = now
        return now - self._period_start < counting

    def compute_durations(self, now: float) -> tuple[float, float]:
        """Return the counting time and the period, in seconds."""
        allowed = min(1.0, MAX_COST_SHARE / self.cost_share) if self.cost_share else 1.0
        wanted = PERIOD_SECONDS if now - self._last_compile < SETTLING_SECONDS else COUNTING_SECONDS
        counting = max(COUNTING_SECONDS, min(wanted, PERIOD_SECONDS * allowed))
        return counting, max(PERIOD_SECONDS, counting / allowed)
