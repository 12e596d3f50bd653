"""The common table of `make bench`: the results of each benchmark, next to its peer and its
goal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

COLLECT = "BENCH_ROWS"
"""Environment variable with the file in which `python -m tests.bench` collects the rows of all
benchmarks."""


@dataclass(frozen=True)
class Row:
    """One result. On a slow or busy machine the peer is slow, too: if there is a goal for the
    ratio, meeting either goal is enough."""

    what: str
    unit: str
    ours: float
    peer: float | None = None
    peer_name: str = ""
    goal: float | None = None
    """Upper limit."""
    goal_ratio: float | None = None

    @property
    def ratio(self) -> float | None:
        """Our value divided by the peer's value."""
        return self.ours / self.peer if self.peer else None

    @property
    def missed(self) -> bool:
        """True if there is a goal and the row misses it."""
        met = [self.goal is not None and self.ours <= self.goal]
        met.append(
            self.goal_ratio is not None and self.ratio is not None and self.ratio <= self.goal_ratio
        )
        return (self.goal is not None or self.goal_ratio is not None) and not any(met)

    @property
    def goal_text(self) -> str:
        """The goal as the table shows it."""
        parts = [f"<= {self.goal:g} {self.unit}"] if self.goal is not None else []
        parts += [f"<= {self.goal_ratio:g} x"] if self.goal_ratio is not None else []
        return " or ".join(parts)


def show(rows: Iterable[Row]) -> int:
    """Prints the rows and adds them to the common table; 1 if a goal is missed."""
    rows = list(rows)
    print("\n".join(lines(rows)), flush=True)
    if os.environ.get(COLLECT):
        with Path(os.environ[COLLECT]).open("a") as file:
            file.writelines(json.dumps(asdict(row)) + "\n" for row in rows)
    return 1 if any(row.missed for row in rows) else 0


def collected(path: Path) -> list[Row]:
    """The rows from the benchmarks."""
    return (
        [Row(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []
    )


def lines(rows: list[Row]) -> list[str]:
    """The table."""
    head = f"{'':66} {'ours':>10} {'peer':>10} {'ratio':>6}  goal"
    return [head, *map(_line, rows)]


def _line(row: Row) -> str:
    what = f"{row.what}, {row.unit}" + (f" (peer: {row.peer_name})" if row.peer_name else "")
    peer = "" if row.peer is None else f"{row.peer:.4g}"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    goal = row.goal_text + (", MISSED" if row.missed else "")
    return f"{what:66} {row.ours:>10.4g} {peer:>10} {ratio:>6}  {goal}".rstrip()
