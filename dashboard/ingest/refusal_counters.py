"""Counts refusals in memory, by project, hour and code; the committer writes the counts down every few seconds."""

from collections import Counter
from threading import Lock

from dashboard.common import clock

Counts = Counter[tuple[int, int, str]]

_lock = Lock()
_counts: Counts = Counter()


def refusal_note(*, project_id: int, code: str, count: int = 1) -> None:
    """Counts a refusal; 0 stands for a request whose key named no project."""
    with _lock:
        _counts[(project_id, int(clock.unix() // 3600), code)] += count


def refusals_take() -> Counts:
    """The counts since they were last taken."""
    global _counts
    with _lock:
        taken, _counts = _counts, Counter()
    return taken


def refusals_give_back(counts: Counts) -> None:
    """Puts counts back that could not be written."""
    with _lock:
        _counts.update(counts)
