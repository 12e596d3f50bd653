"""Counts what was acknowledged in memory, by project and hour; the committer writes the counts down every few seconds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from threading import Lock

from dashboard.common import clock


@dataclass
class Taken:
    """Reports and bytes by project and hour, and the commits they took."""

    reports: Counter[tuple[int, int]] = field(default_factory=Counter)
    bytes: Counter[tuple[int, int]] = field(default_factory=Counter)
    commits: int = 0
    commit_seconds: float = 0.0


_lock = Lock()
_taken = Taken()


def intake_note(*, project_id: int, reports: int, size: int) -> None:
    """A request of so many bytes was acknowledged."""
    key = (project_id, int(clock.unix() // 3600))
    with _lock:
        _taken.reports[key] += reports
        _taken.bytes[key] += size


def commit_note(seconds: float) -> None:
    """The database took so long to make a group of requests durable, or to fail."""
    with _lock:
        _taken.commits += 1
        _taken.commit_seconds += seconds


def intake_take() -> Taken:
    """The counts since they were last taken."""
    global _taken
    with _lock:
        taken, _taken = _taken, Taken()
    return taken


def intake_give_back(taken: Taken) -> None:
    """Puts counts back that could not be written."""
    with _lock:
        _taken.reports.update(taken.reports)
        _taken.bytes.update(taken.bytes)
        _taken.commits += taken.commits
        _taken.commit_seconds += taken.commit_seconds
