"""When guard lookups are counted: all the time after a compilation, then one second in ten, and less where they would cost too much."""

from __future__ import annotations

SETTLING_SECONDS = 20.0
PERIOD_SECONDS, COUNTING_SECONDS = 10.0, 1.0
LOOKUP_SECONDS = 1.1e-6
"""What the hook adds to a lookup in the caches that a CUDA graph's launch leaves, on an H200; 0.44 us in warm ones."""
SHARE = 0.0005
"""What counting may add to the calls' own time; the rest of a hundredth is for counting and timing them."""

FEW_LOOKUPS = 1000
"""Fewer in a stretch are noticed by nobody, whatever part of their calls they are; and of rare calls each answer is worth having."""


class Turns:
    """Stretches with and without counting; times are of one steady clock."""

    def __init__(self, now: float) -> None:
        self.cost = 0.0
        """What counting added to the calls' time while it was last done, as a share of that time."""
        self._changed = self._began = now

    def compiled(self, now: float) -> None:
        """Something was compiled: what runs compiled may be another thing now."""
        self._changed = now

    def looked_up(self, lookups: int, busy: float) -> None:
        """In the stretch of counting under way there were so many lookups in so many seconds of calls."""
        if lookups < FEW_LOOKUPS:
            self.cost = 0.0
        elif busy > 0:
            self.cost = lookups * LOOKUP_SECONDS / busy

    def counts(self, now: float) -> bool:
        """Whether lookups are to be counted now."""
        counting, period = self.stretch(now)
        if now - self._began >= period:
            self._began = now
        return now - self._began < counting

    def stretch(self, now: float) -> tuple[float, float]:
        """For how long lookups are counted, and how often."""
        allowed = min(1.0, SHARE / self.cost) if self.cost else 1.0
        wanted = PERIOD_SECONDS if now - self._changed < SETTLING_SECONDS else COUNTING_SECONDS
        counting = max(COUNTING_SECONDS, min(wanted, PERIOD_SECONDS * allowed))
        return counting, max(PERIOD_SECONDS, counting / allowed)
