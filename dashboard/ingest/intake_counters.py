"""Intake counters: acknowledged reports and bytes in memory, by project and hour. The committer
writes them every few seconds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from threading import Lock

from dashboard.common import clock


@dataclass
class IntakeCounts:
    """Reports and bytes by project and hour, and the number and duration of commits."""

    reports: Counter[tuple[int, int]] = field(default_factory=Counter)
    bytes: Counter[tuple[int, int]] = field(default_factory=Counter)
    commits: int = 0
    commit_seconds: float = 0.0


_lock = Lock()
_counts = IntakeCounts()


def record_intake(*, project_id: int, reports: int, size: int) -> None:
    """Counts an acknowledged request of `size` bytes."""
    key = (project_id, int(clock.unix() // 3600))
    with _lock:
        _counts.reports[key] += reports
        _counts.bytes[key] += size


def record_commit(seconds: float) -> None:
    """Counts a commit, successful or not, that took `seconds` to answer."""
    with _lock:
        _counts.commits += 1
        _counts.commit_seconds += seconds


def drain_intake() -> IntakeCounts:
    """Returns and resets the counts since the last drain."""
    global _counts
    with _lock:
        taken, _counts = _counts, IntakeCounts()
    return taken


def restore_intake(taken: IntakeCounts) -> None:
    """Adds back counts that could not be written."""
    with _lock:
        _counts.reports.update(taken.reports)
        _counts.bytes.update(taken.bytes)
        _counts.commits += taken.commits
        _counts.commit_seconds += taken.commit_seconds
