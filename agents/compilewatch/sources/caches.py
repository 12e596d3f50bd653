"""Whether torch's compile caches answered: the change of its process-wide counters over one compilation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COUNTERS = {
    "fx": ("inductor", "fxgraph_cache_"),
    "aot": ("aot_autograd", "autograd_cache_"),
}
_ANSWERS = ("miss", "bypass", "hit")


class CacheCounters:
    """Reads `torch._dynamo.utils.counters` and remembers what it has already told."""

    def __init__(self, counters: Mapping[str, Mapping[str, Any]]) -> None:
        self._counters = counters
        self._told = self._read()

    def delta(self) -> dict[str, str]:
        """Each cache's answer since the last call: a miss of any part of a graph makes the whole a miss."""
        now = self._read()
        answers = {}
        for cache in _COUNTERS:
            for answer in _ANSWERS:
                if _grown(self._told.get((cache, answer), 0), now[cache, answer]):
                    answers[cache] = answer
                    break
        self._told = now
        return answers

    def _read(self) -> dict[tuple[str, str], int]:
        values = {}
        for cache, (group, prefix) in _COUNTERS.items():
            # The counters are default dictionaries: `get` leaves the job's own view of them unchanged.
            section = self._counters.get(group) or {}
            for answer in _ANSWERS:
                values[cache, answer] = int(section.get(prefix + answer, 0))
        return values


def _grown(before: int, after: int) -> bool:
    # Smaller than before means someone cleared the counters: what stands there now is new.
    return after > (before if after >= before else 0)
