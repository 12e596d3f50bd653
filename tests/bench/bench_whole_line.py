"""Reports per second that the whole pipeline sustains: `python -m tests.bench.bench_whole_line
[--workers 1 2 4] [--minutes 10]`.

Web, fold workers, PostgreSQL, Redis and the load generator share the machine. Each instance
sends every 10 s, as agents do, so 1,500 reports/s are 15,000 instances. Rates increase, with one
minute for each. The fold lag is the age of the oldest waiting report, sampled each second. The last
rate with a fold lag p99 of at most 5 s runs for the whole time. Every run starts with thousands of
new instances; its first 20 s count for the acknowledged reports but not for the lag
(bench_reconnect measures such an arrival). At the end every acknowledged report must be folded
exactly once. `unknown outcome` counts the reports whose response did not arrive before the run
ended.

On a larger machine `--cores 0 1` pins the pipeline to two cores and leaves the other cores to the
generator. PostgreSQL and Redis must be pinned where they are started (`taskset`)."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Collection
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from tests.bench.line import Line
from tests.bench.line_books import Books, books_close, others_of

LAG_GOAL, RATE_GOAL = 5.0, {"postgresql": 1500, "sqlite": 600}
SENDS_EVERY = 10
DRAINED_WITHIN = 300.0
ARRIVES = 20
PARTS = ("web", "workers", "database")


@dataclass
class Run:
    """One rate for some time: acknowledged and folded reports, lags in seconds, and processor
    microseconds and bytes of PostgreSQL's write-ahead log per report. The log includes all other
    writes of the PostgreSQL server."""

    rate: float
    figures: dict[str, Any]
    lags: list[float]
    cost: dict[str, float]
    log_bytes: float
    drained: float
    books: Books

    @property
    def lag(self) -> float:
        """The p99 of the fold lag, limited to the observed range if there are few samples."""
        return quantiles(self.lags, n=100, method="inclusive")[98]

    @property
    def usual_lag(self) -> float:
        """The median of the fold lag."""
        return median(self.lags)

    @property
    def kept_up(self) -> bool:
        """True if nearly all offered reports were accepted and folded in time."""
        return (
            self.lag <= LAG_GOAL
            and self.figures["rate"] >= 0.97 * self.rate
            and self.books.balanced
        )

    def row(self) -> str:
        """One line of the table."""
        cost = ", ".join(f"{part} {self.cost[part]:.0f}" for part in PARTS if part in self.cost)
        lag = f"fold lag p50 {self.usual_lag:4.1f} s, p99 {self.lag:4.1f} s"
        return (
            f"offered {self.rate:5.0f}/s  acknowledged {self.figures['rate']:5.0f}/s  p99 "
            f"{self.figures['p99']:6.1f} ms"
            f"  {lag}  refused {self.figures['refused'] or 'none'}  drained after "
            f"{self.drained:.0f} s"
            f"  {self.books}  processor us per report: {cost}, generator {self.cost['generator']:.0f}"
            f"  log {self.log_bytes:.0f} B per report"
        )


class Fleet:
    """A running pipeline, and the load offered to it until now."""

    def __init__(self, database: str, workers: int, cores: Collection[int]) -> None:
        self.line, self.workers = Line(database, cores), workers
        self.line.serve("embedded" if database == "sqlite" else "granian")
        if database == "postgresql":
            for number in range(workers):
                self.line.worker(f"worker{number}")

    def offer(self, rate: float, seconds: float) -> Run:
        """Loads the pipeline at this rate and waits until everything is folded."""
        before, others, logged = self._processor(), others_of(self._folded()), self._logged()
        ledger = self.line.folder / "ledger.json"
        instances = int(rate * SENDS_EVERY)
        generator = self.line.load_start(
            seconds=ARRIVES + seconds,
            connections=64,
            instances=instances,
            rate=rate,
            ledger=str(ledger),
        )
        lags, began = [], time.perf_counter()
        while generator.poll() is None:
            age = self._age()
            if time.perf_counter() - began > ARRIVES:
                lags.append(age)
            time.sleep(1)
        figures = json.loads(generator.communicate()[0])
        ended = time.perf_counter()
        while self._age() and time.perf_counter() - ended < DRAINED_WITHIN:
            time.sleep(0.5)
        drained = time.perf_counter() - ended
        count = max(1, figures["acknowledged"])
        cost = {
            part: 1e6 * (after - before[part]) / count for part, after in self._processor().items()
        }
        cost["generator"] = 1e6 * figures["processor"] / count
        books = self._books(json.loads(ledger.read_text()), others)
        return Run(rate, figures, lags, cost, (self._logged() - logged) / count, drained, books)

    def _processor(self) -> dict[str, float]:
        if self.line.database == "sqlite":
            return {"web": self.line.processor("web")}
        workers = sum(self.line.processor(f"worker{number}") for number in range(self.workers))
        return {
            "web": self.line.processor("web"),
            "workers": workers,
            "database": self.line.processor("database"),
        }

    def _age(self) -> float:
        now = (
            "extract(epoch FROM now() - min(received_at))"
            if self.line.database == "postgresql"
            else "86400.0 * (julianday('now') - julianday(min(received_at)))"
        )
        [[age]] = self.line.rows(f"SELECT {now} FROM ingest_inbox")
        return float(age or 0.0)

    def _logged(self) -> int:
        if self.line.database == "sqlite":
            return 0
        return int(self.line.rows("SELECT pg_current_wal_lsn() - '0/0'")[0][0])

    def _books(self, acked: dict[str, int], others: int) -> Books:
        folded = self._folded()
        ranges = self.line.rows("SELECT instance_id, ranges FROM ingest_sender")
        # SQLite hands JSON out as text.
        spans = {
            instance: json.loads(found) if isinstance(found, str) else found
            for instance, found in ranges
        }
        taken = {
            instance: sum(last - first + 1 for first, last in pairs)
            for instance, pairs in spans.items()
        }
        return books_close(
            acked=acked, taken=taken, folded=folded, others=others_of(folded) - others
        )

    def _folded(self) -> dict[str, int]:
        named = (
            "JOIN instance ON instance.id = process_minute.instance_id GROUP BY "
            "instance.instance_id"
        )
        found = self.line.rows(
            f"SELECT instance.instance_id, sum(windows) FROM process_minute {named}"
        )
        return {instance: int(windows) for instance, windows in found}


def climb(fleet: Fleet, rates: list[float], seconds: float) -> float:
    """The highest rate that the pipeline sustains; prints each."""
    best = 0.0
    for rate in rates:
        run = fleet.offer(rate, seconds)
        print(f"{fleet.workers} workers  {run.row()}", flush=True)
        if not run.kept_up:
            break
        best = rate
    return best


def main() -> None:
    """Prints one line per rate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", default="postgresql", choices=sorted(RATE_GOAL))
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    parser.add_argument(
        "--cores", type=int, nargs="+", default=[], help="cores of the pipeline (default: all)"
    )
    parser.add_argument(
        "--rates", type=float, nargs="+", default=[400, 600, 800, 1000, 1250, 1500, 1750, 2000]
    )
    parser.add_argument("--try-seconds", type=float, default=60)
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    for workers in options.workers:
        fleet = Fleet(options.database, workers, options.cores)
        try:
            best = climb(fleet, options.rates, options.try_seconds)
            if best and options.minutes:
                run = fleet.offer(best, 60 * options.minutes)
                word = "kept up" if run.kept_up else "did not keep up"
                print(
                    f"{workers} workers, {options.minutes:g} min, {word} (goal "
                    f"{RATE_GOAL[options.database]}/s)  {run.row()}",
                    flush=True,
                )
        finally:
            fleet.line.close()


if __name__ == "__main__":
    main()
