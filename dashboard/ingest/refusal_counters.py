"""Counts refusals in memory, by project, hour and code; the committer writes the counts down every
few seconds."""

from collections import Counter
from threading import Lock

from dashboard.common import clock

RefusalCounts = Counter[tuple[int, int, str]]

_lock = Lock()
_counts: RefusalCounts = Counter()


def record_refusal(*, project_id: int, code: str, count: int = 1) -> None:
    """Counts a refusal; 0 stands for a request whose key named no project."""
    with _lock:
        _counts[(project_id, int(clock.unix() // 3600), code)] += count


def drain_refusals() -> RefusalCounts:
    """The counts since they were last taken."""
    global _counts
    with _lock:
        taken, _counts = _counts, Counter()
    return taken


def restore_refusals(counts: RefusalCounts) -> None:
    """Puts counts back that could not be written."""
    with _lock:
        _counts.update(counts)
