"""Crash points of a running dashboard: a file named for one arms it, whichever process passes first
dies there and renames the file."""

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
    """What the settings of the dashboard's processes ask at each point."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._passed: Counter[str] = Counter()

    def __call__(self, name: str) -> bool:
        """Whether to die now; of several processes that come at the same time one does."""
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
    """From now on, whoever passes the point that often dies there."""
    waiting = folder / f"{name}.new"
    waiting.write_text(str(passes))
    waiting.rename(folder / name)


def disarm(folder: Path) -> Counter[str]:
    """Takes back what has not happened; returns what has."""
    fired: Counter[str] = Counter()
    for name in POINTS:
        (folder / name).unlink(missing_ok=True)
        file = folder / f"{name}.fired"
        if file.exists():
            file.unlink()
            fired[name] += 1
    return fired
