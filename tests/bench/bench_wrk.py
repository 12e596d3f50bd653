"""The full stack under maximum load from wrk: `python -m tests.bench.bench_wrk --seconds 60
--connections 400` (wrk must be installed).

Bodies are encoded in advance. First a usual rate is sent and pages are read, then wrk keeps every
connection busy. The output shows the offered and acknowledged reports, the page times during the
overload, the time until pages are back to normal and everything is folded, and the ledger. For each
instance, at least the acknowledged reports must be stored. In total, the additional stored reports
may not exceed the requests in flight."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from threading import Event, Thread

from tests.bench.line import Line
from tests.bench.page_reader import Pages, ask, p95, paths_read, session_cookie
from tests.bench.table import Row, show
from tests.bench.tenant_work import CALLS
from tests.bench.wrk_load import Wrk, bodies_write, wrk_run

INSTANCES, PAGES_A_SECOND = 2000, 2.0
GOAL_RECOVERY_S = 10.0


def pages_while(line: Line, cookie: str, seconds: float, done: Event | None = None) -> Pages:
    """A person who reads pages for `seconds`, or until `done` is set."""
    pages = Pages(line.port, cookie, paths_read(line, "bench"), PAGES_A_SECOND)
    pages.start()
    (done or Event()).wait(seconds)
    pages.stop()
    return pages


def overload(
    line: Line, folder: Path, cookie: str, *, seconds: float, connections: int
) -> tuple[Wrk, Pages]:
    """Runs wrk while a person reads pages."""
    found, done = list[Wrk](), Event()

    def run() -> None:
        try:
            found.append(wrk_run(line, folder, seconds=seconds, connections=connections))
        finally:
            done.set()

    thread = Thread(target=run)
    thread.start()
    pages = pages_while(line, cookie, seconds + 60, done)
    thread.join()
    return found[0], pages


def recovery(line: Line, cookie: str, usual: float) -> tuple[float, float]:
    """Seconds from now until three consecutive pages take at most twice the usual time, and until
    no report waits for the fold."""
    began, quick, again = time.monotonic(), 0, 0.0
    paths = paths_read(line, "bench")
    while quick < 3 and time.monotonic() - began < 300:
        asked = time.monotonic()
        status = ask(line.port, "GET", paths[quick % len(paths)], {"Cookie": cookie})
        quick = quick + 1 if status == 200 and time.monotonic() - asked <= 2 * usual else 0
        again = time.monotonic() - began
    while line.rows("SELECT 1 FROM ingest_inbox LIMIT 1") and time.monotonic() - began < 1800:
        time.sleep(0.5)
    return again, time.monotonic() - began


def ledger(line: Line, acknowledged: dict[str, int]) -> tuple[int, int]:
    """Number of acknowledged reports that are not stored, and of stored reports beyond the
    acknowledged ones. The second number is at most the number of requests in flight."""
    query = "SELECT i.instance_id, sum(r.calls) FROM region_minute r JOIN instance i ON i.id = r.instance_id GROUP BY 1"
    stored = {instance: int(calls) / CALLS for instance, calls in line.rows(query)}
    missing = sum(
        max(0.0, count - stored.get(instance, 0.0)) for instance, count in acknowledged.items()
    )
    return round(missing), round(sum(stored.values()) - sum(acknowledged.values()) + missing)


def summary(name: str, pages: Pages) -> str:
    """Page times of the person, as one line."""
    return (
        f"{name}: pages p50 {1000 * median(pages.seconds):.0f} ms, p95 {1000 * p95(pages.seconds):.0f} ms,"
        f" max {1000 * max(pages.seconds):.0f} ms ({len(pages.seconds)} pages, {pages.failed} failed)"
    )


def run(line: Line, folder: Path, options: argparse.Namespace) -> int:
    """Prints one line per phase and the table."""
    line.serve("granian")
    line.worker(concurrency=2)
    warm = line.load(seconds=5, instances=60, rate=100)["acknowledged"]
    cookie = session_cookie(line, "ada")
    half = line.load_start(seconds=options.usual, instances=60, rate=options.rate)
    usual = pages_while(line, cookie, options.usual)
    counted = json.loads(half.communicate()[0])
    print(
        f"{summary('usual', usual)}; reports acknowledged {counted['rate']:.0f}/s, p99 {counted['p99']:.0f} ms",
        flush=True,
    )
    size = bodies_write(
        folder,
        count=int(options.seconds * options.most),
        instances=INSTANCES,
        seed=int(time.time()),
    )
    print(f"{int(options.seconds * options.most):,} bodies, {size / 2**20:.0f} MiB", flush=True)
    wrk, pages = overload(
        line, folder, cookie, seconds=options.seconds, connections=options.connections
    )
    answered = wrk.statuses.total()
    print(
        f"wrk with {options.connections} connections for {wrk.seconds:.0f} s: offered {answered / wrk.seconds:.0f}/s, acknowledged"
        f" {wrk.statuses[200] / wrk.seconds:.0f}/s, statuses {dict(wrk.statuses)}, broken or timed out {wrk.errors}, p50 {wrk.p50:.0f} ms,"
        f" p99 {wrk.p99:.0f} ms\n{summary('during the overload', pages)}",
        flush=True,
    )
    again, folded = recovery(line, cookie, p95(usual.seconds))
    missing, beyond = ledger(line, wrk.acknowledged)
    others = warm + counted["acknowledged"]
    print(f"pages back to normal after {again:.1f} s, all folded after {folded:.0f} s; acknowledged but not stored: {missing}; stored"
          f" beyond the reports that wrk saw acknowledged: {beyond - others} (at most {options.connections} were in flight)")  # fmt: skip
    rows = [
        Row("overload by wrk: acknowledged reports lost", "reports", missing, goal=0),
        Row(
            "overload by wrk: stored without a response",
            "reports",
            beyond - others,
            goal=options.connections,
        ),
        Row("overload by wrk: pages back to normal after", "s", again, goal=GOAL_RECOVERY_S),
        Row(
            "overload by wrk: page p95",
            "ms",
            1000 * p95(pages.seconds),
            1000 * p95(usual.seconds),
            "usual",
        ),
    ]
    return show(rows)


def main() -> int:
    """1 if a report was lost, or pages were not back to normal in time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--usual", type=float, default=60, help="seconds of usual load before the overload"
    )
    parser.add_argument(
        "--rate", type=float, default=100, help="reports per second of the usual load"
    )
    parser.add_argument("--connections", type=int, default=400)
    parser.add_argument(
        "--most",
        type=int,
        default=3500,
        help="encoded bodies per second; wrk starts again after the last one",
    )
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: apt-get install wrk")
    line = Line("postgresql")
    with tempfile.TemporaryDirectory() as folder:
        try:
            return run(line, Path(folder), options)
        finally:
            line.close()


if __name__ == "__main__":
    sys.exit(main())
