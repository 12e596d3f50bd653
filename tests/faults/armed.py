"""Crash points of a running dashboard: a file with the name of a crash point arms it. The first
process that passes the point dies there and renames the file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

FOLD_POINTS = ("claimed", "upserted", "before_commit", "committed")
POINTS = (
    "web_parsed", "web_inserted", "web_before_commit", "web_committed",
    *FOLD_POINTS,
    "delivery_leased", "delivery_sent",
)  # fmt: skip


class Armed:
    """Crash-point check in the settings of the dashboard's processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._passed: Counter[str] = Counter()

    def __call__(self, name: str) -> bool:
        """True if the process must die now; of several simultaneous processes, one dies."""
        file = self._folder / name
        try:
            wanted = int(file.read_text() or "1")
        except FileNotFoundError:
            return False
        self._passed[name] += 1
        if self._passed[name] < wanted:
            return False
        self._passed[name] = 0
        try:
            file.rename(self._folder / f"{name}.fired")
        except FileNotFoundError:
            return False
        return True


def arm(folder: Path, name: str, passes: int) -> None:
    """From now on, a process dies when it passes the point for the `passes`-th time."""
    waiting = folder / f"{name}.new"
    waiting.write_text(str(passes))
    waiting.rename(folder / name)


def disarm(folder: Path) -> Counter[str]:
    """Disarms the remaining points; returns the points that have fired."""
    fired: Counter[str] = Counter()
    for name in POINTS:
        (folder / name).unlink(missing_ok=True)
        file = folder / f"{name}.fired"
        if file.exists():
            file.unlink()
            fired[name] += 1
    return fired
