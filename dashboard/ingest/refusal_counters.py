"""Refusal counters in memory, by project, hour and code. The committer writes them every few
seconds."""

from collections import Counter
from threading import Lock

from dashboard.common import clock

RefusalCounts = Counter[tuple[int, int, str]]

_lock = Lock()
_counts: RefusalCounts = Counter()


def record_refusal(*, project_id: int, code: str, count: int = 1) -> None:
    """Counts a refusal; project 0 means that the key identified no project."""
    with _lock:
        _counts[(project_id, int(clock.unix() // 3600), code)] += count


def drain_refusals() -> RefusalCounts:
    """Returns and resets the counts since the last drain."""
    global _counts
    with _lock:
        taken, _counts = _counts, Counter()
    return taken


def restore_refusals(counts: RefusalCounts) -> None:
    """Adds back counts that could not be written."""
    with _lock:
        _counts.update(counts)
