"""Effect of a hostile project on another project of the same dashboard: `python -m
tests.bench.bench_tenants --minutes 10`.

The full stack (PostgreSQL, granian, a Celery worker with two processes) serves both projects.
The first project sends reports and reads pages, first alone and then next to the hostile project.
The hostile project sends ten times as many reports, reports that the database rejects, corrupted
bodies and requests from slow clients, and requests its own largest pages. The output shows the fold
lag, pages and reports of the first project, and its ledger."""

from __future__ import annotations

import argparse
import json
import sys
from statistics import median
from typing import Any

from tests.bench.page_reader import Pages, p95, paths_read, project_id, session_cookie
from tests.bench.table import Row, show
from tests.bench.tenant_work import Tenants, lags

GOAL = 2.0
"""Maximum factor over the usual value."""


def shape(tenants: Tenants, *, seconds: float, hostile: bool) -> dict[str, Any]:
    """Runs the first project for `seconds`: lags and pages in seconds, and the results of its
    generator."""
    honest = tenants.honest_start(seconds=seconds)
    others = tenants.hostile_start(seconds=seconds) if hostile else []
    pages = Pages(
        tenants.port, session_cookie(tenants.line, "ada"), paths_read(tenants.line, "bench")
    )
    pages.start()
    found = lags(tenants.line, project_id(tenants.line, "bench"), seconds=seconds)
    pages.stop()
    reports = json.loads(honest.communicate()[0])
    tenants.acknowledged += reports["acknowledged"]
    return {
        "lag": found,
        "pages": pages.seconds,
        "failed": pages.failed,
        "reports": reports,
        "hostile": [one.end() for one in others],
    }


def summary(name: str, one: dict[str, Any]) -> str:
    """One line to read."""
    reports, lag = one["reports"], one["lag"]
    return (
        f"{name}: fold lag p50 {median(lag):.2f} s, p95 {p95(lag):.2f} s, max "
        f"{max(lag):.2f} s ({len(lag)} reports)"
        f"; pages p50 {1000 * median(one['pages']):.0f} ms, p95 "
        f"{1000 * p95(one['pages']):.0f} ms, max {1000 * max(one['pages']):.0f} ms"
        f" ({len(one['pages'])} pages, {one['failed']} failed); reports acknowledged "
        f"{reports['acknowledged']},"
        f" refused {reports['refused'] or 'none'}, p50 {reports['p50']:.0f} ms, p99 "
        f"{reports['p99']:.0f} ms" + "".join(f"\n    hostile {text}" for text in one["hostile"])
    )


def main() -> int:
    """Prints one line per shape, the ledger, and the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10, help="minutes under load")
    parser.add_argument("--usual-minutes", type=float, default=3, help="minutes alone")
    options = parser.parse_args()
    tenants = Tenants()
    try:
        shape(
            tenants, seconds=20, hostile=False
        )  # fills the pages with rows and warms the processes
        usual = shape(tenants, seconds=60 * options.usual_minutes, hostile=False)
        print(summary("alone", usual), flush=True)
        loaded = shape(tenants, seconds=60 * options.minutes, hostile=True)
        print(summary(f"hostile project for {options.minutes:g} min", loaded), flush=True)
        differs = tenants.ledger_differs()
        print(
            f"ledger of the first project: {tenants.acknowledged} reports acknowledged, "
            f"{differs} calls differ",
            flush=True,
        )
    finally:
        tenants.close()
    rows = [
        Row(
            f"{what} next to a hostile project, {name}",
            "ms",
            1000 * at(loaded[key]),
            1000 * at(usual[key]),
            "alone",
            goal_ratio=GOAL,
        )
        for what, key in (("fold lag", "lag"), ("page", "pages"))
        for name, at in (("p50", median), ("p95", p95))
    ]
    return show(rows) or int(
        differs != 0 or bool(loaded["reports"]["refused"]) or loaded["failed"] > 0
    )


if __name__ == "__main__":
    sys.exit(main())
