"""Resources for a number of processes, from the cost of one report: `python -m tests.bench.sizing`
prints the table of dashboard/docs/operations/capacity.md.

The costs are processor microseconds and bytes per report, as measured by `bench_whole_line`; each
process sends every 10 s."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import ceil

SENDS_EVERY = 10
BUSY = 0.5
"""Planned share of a core; the rest is for peaks, restarts and pages."""
ONE_POSTGRESQL = 16
"""Maximum cores of one PostgreSQL; beyond that, projects are spread over several servers."""


@dataclass(frozen=True)
class Cost:
    """Cost of one report: processor microseconds of the web process, of a fold worker and of
    PostgreSQL, and bytes of its log. `kept` is bytes retained per process and day."""

    web: float
    fold: float
    database: float
    log: float
    kept: float


def cores(rate: float, microseconds: float) -> int:
    """Whole cores for this number of reports per second."""
    return max(1, ceil(rate * microseconds / 1e6 / BUSY))


def row(processes: int, cost: Cost) -> str:
    """One line of the table, in Markdown."""
    rate = processes / SENDS_EVERY
    web, fold, database = cores(rate, cost.web), cores(rate, cost.fold), cores(rate, cost.database)
    servers = ceil(database / ONE_POSTGRESQL)
    shape = "one PostgreSQL" if servers == 1 else f"{servers} PostgreSQL servers, spread by project"
    return (
        f"| {processes:,} | {rate:,.0f} | {web} | {fold} | {database}, {shape} | "
        f"{rate * cost.log / 1e6:,.1f} MB/s"
        f" | {processes * cost.kept * 8 / 1e9:,.0f} GB |"
    )


def table(cost: Cost) -> str:
    """The table for ten thousand, a hundred thousand and a million processes."""
    head = (
        "| processes | reports/s | web cores | fold cores | PostgreSQL cores | write-ahead log "
        "| 8 days of instance minutes |"
    )
    return "\n".join(
        [
            head,
            "|---|---|---|---|---|---|---|",
            *(row(processes, cost) for processes in (10_000, 100_000, 1_000_000)),
        ]
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("web", "fold", "database", "log", "kept"):
        parser.add_argument(f"--{name}", type=float, required=True)
    print(table(Cost(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
