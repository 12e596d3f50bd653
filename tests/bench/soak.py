"""Two days of a dashboard and its agents in two hours, with faults: `python -m tests.bench.soak
--minutes 120 [--pace 10] [--seed N]`.

How time is compressed, and what that leaves out. Agents send each second of real time, ten times as
often as they do. All clocks (of the dashboard by `dashboard.common.clock`, of the agents by
`time.time`) run `pace` times as fast for the `--day` real seconds of a day's traffic, then it is
noon of the next day: nights are left out, so that in two hours as many days end as retention needs
to drop what it keeps for 8 days and for 35. Waits, time limits and intervals of processes stay
those of real time; what beat sends more seldom than once a day it sends once a day (`soak_pace`). A
day is thus some minutes of traffic long: tables reach the size of so many such days, not that of
real ones. PostgreSQL cleans up by its own clock, which is real.

Of web, worker and beat there are two: what is killed all along is the second; the first is left in
peace but for what befalls Redis, PostgreSQL and the network, for a process that is started anew
each few minutes could not show that it grows. The first is killed as well while the first eighth of
the run lasts. Two jobs last, two come and go: they are killed, told to end, and come back with
another version.

Each minute a line is added to samples.jsonl; the table at the end (also on SIGTERM) takes the last
life of each process after its first minutes, and tables from when retention has begun to drop from
the oldest that is kept. `--table FILE` prints it from such a file."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import threading
import time
import traceback
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tests.environment  # noqa: F401  # says which Redis
from tests.bench.soak_books import Books
from tests.bench.soak_clock import DAY, clock, written
from tests.bench.soak_crowd import Crowd
from tests.bench.soak_line import KILLED, LASTING, SoakLine, TwoDoors
from tests.bench.soak_samples import folder_of, look
from tests.bench.soak_table import lines, lives
from tests.faults.schedule import network

KEPT = {"instance_minutes": 8, "version_minutes": 8, "compile_events": 8, "version_hours": 35}
SETTLED = 25 / 60
"""Hours after which a process has what it needs: who no longer reports is forgotten within 20
minutes, so that it levels after that."""
PAGES = ("/p/flow/", "/p/flow/alerts/", "/p/flow/health/")
LIVES = 4
"""Days of a version."""


class Soak:
    """The line, its jobs, and what befalls them."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.chance = given, random.Random(given.seed)
        self.folder = folder_of(given.folder.resolve())
        self.began = time.time()
        text = written(base=self.began, pace=given.pace, day=given.day)
        self.clock = clock(text)
        self.line = SoakLine(folder_of(self.folder / "line"), text)
        self.proxy = TwoDoors(list(self.line.ports.values()), given.seed)
        self.books = Books(folder_of(self.folder / "ledgers"))
        self.jobs: dict[str, subprocess.Popen[bytes]] = {}
        self.fired = Counter[str]()
        self.over = threading.Event()
        self.samples: list[dict[str, Any]] = []
        self._job_number = 0

    @property
    def passed(self) -> float:
        """Seconds since the begin."""
        return time.time() - self.began

    @property
    def day(self) -> int:
        """Days since the begin."""
        return int(self.passed // self.given.day)

    def run(self) -> None:
        """Until its minutes are over or it is told to end."""
        self.line.start(channel="http://127.0.0.1:9/none")
        self.line.manage(
            "retention",
            "--project",
            "flow",
            "--set",
            *(f"{name}={days}" for name, days in KEPT.items()),
        )
        crowd = Crowd(
            port=self.proxy.port,
            key=self.line.key,
            clock=self.clock,
            books=self.books,
            days=LIVES,
            of_a_day=12,
            rate=3.0,
        )
        crowd.start()
        for name in ("lasting-1", "lasting-2", "guest-1", "guest-2"):
            self._job(name)
        threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._faults, self._guests, self._visits)
        ]
        for thread in threads:
            thread.start()
        while not self.over.wait(self.given.every) and self.passed < self.given.minutes * 60:
            self._try(self._sample)
        self.over.set()
        crowd.over.set()
        self.proxy.calm()

    def _sample(self) -> None:
        found = {
            "at": self.passed,
            "day": self.day,
            **look(self.line, {name: job.pid for name, job in self.jobs.items()}),
        }
        found |= {
            "books": self.books.audit(self.line),
            "fired": dict(self.fired),
            "restarts": dict(self.line.restarts),
        }
        self.samples.append(found)
        with (self.folder / "samples.jsonl").open("a") as file:
            file.write(json.dumps(found) + "\n")

    def _job(self, name: str) -> None:
        self._job_number += 1
        version = "steady" if name.startswith("lasting") else f"guest-{self.day // LIVES}"
        ledger = self.books._folder / f"{self._job_number}.{version}.ledger"
        self.jobs[name] = self.line.job(ledger, version, self.proxy.endpoint)

    def _guests(self) -> None:
        """One of the two that come and go ends, in one way or the other, and comes back."""
        while not self.over.wait(self.chance.uniform(0.5, 2.0) * self.given.day):
            name = self.chance.choice(("guest-1", "guest-2"))
            how = self.chance.choice((signal.SIGKILL, signal.SIGTERM))
            self.jobs[name].send_signal(how)
            self.jobs[name].wait(60)
            self.fired[f"job {how.name}"] += 1
            self._job(name)

    def _visits(self) -> None:
        """Somebody signs in and looks at pages."""
        while not self.over.wait(self.given.day):
            for page in PAGES:
                try:
                    self.line.page(page)
                    self.fired["page"] += 1
                except (OSError, urllib.error.URLError, TypeError):
                    self.fired["page failed"] += 1

    def _faults(self) -> None:
        while not self.over.wait(self.chance.uniform(60, 180)):
            early = self.passed < self.given.minutes * 60 / 8
            roles = KILLED + (LASTING if early else ())
            kind = self.chance.choice(
                (
                    "killed",
                    "killed",
                    "redis flushed",
                    "redis killed",
                    "sessions ended",
                    "network",
                    "network down",
                )
            )
            self._try(self._fault, kind, self.chance.choice(roles))

    def _try(self, step: Callable[..., None], *words: str) -> None:
        """A look or a fault that fails is said and counted; the run goes on."""
        try:
            step(*words)
        except Exception:  # noqa: BLE001 - two hours are not given up for one look
            self.fired["failed here"] += 1
            traceback.print_exc()

    def _fault(self, kind: str, role: str) -> None:
        assert self.line.redis is not None
        self.fired[f"{role} killed" if kind == "killed" else kind] += 1
        if kind == "killed":
            self.line.strike(role)
        elif kind == "redis flushed":
            self.line.redis.flush()
        elif kind == "redis killed":
            self.line.redis.kill()
            self.over.wait(self.chance.uniform(0, 10))
            self.line.redis.start()
        elif kind == "sessions ended":
            self.line.sessions_end()
        elif kind == "network":
            self.proxy.plan = network(self.chance.uniform(0.1, 0.6))
            self.over.wait(60)
            self.proxy.calm()
        else:
            self.proxy.down()
            self.over.wait(self.chance.uniform(1, 30))
            self.proxy.up()

    def close(self) -> dict[str, int]:
        """Ends the jobs, waits for the folds, and compares the books a last time; whatever fails,
        no process is left behind."""
        self.over.set()
        with contextlib.ExitStack() as ends:
            ends.callback(self.proxy.close)
            ends.callback(self.line.close)
            for job in self.jobs.values():
                ends.callback(job.kill)
                job.terminate()
            for job in self.jobs.values():
                job.wait(60)
            deadline = time.monotonic() + 120
            while not self.line.folded() and time.monotonic() < deadline:
                time.sleep(0.5)
            return self.books.audit(self.line)


def report(samples: list[dict[str, Any]], given: argparse.Namespace) -> Iterable[str]:
    """What a run is worth, from its samples."""
    kept = (KEPT["version_hours"] + 2) * given.day / 3600
    last = samples[-1]
    yield (
        f"{last['at'] / 60:.0f} min, {last['day']} days of {given.day * given.pace / 60:g} min "
        f"of traffic; {len(samples)} looks"
    )
    yield from lines(samples, settled=SETTLED, kept=kept)
    yield from lives(samples, "worker-1")
    yield f"what befell it: {last['fired']}; started again: {last['restarts']}"
    yield (
        "partitions now: "
        f"{ {name: parts[0] for name, parts in last['tables'].items() if parts[0] > 1} }"
    )
    yield (
        f"books: {last['books']}; over all looks lost "
        f"{max(one['books']['lost'] for one in samples)}"
    )


def options() -> argparse.Namespace:
    """What is asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--pace", type=float, default=10)
    parser.add_argument(
        "--day", type=float, default=72, help="real seconds of a day's traffic; nights are left out"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=60, help="real seconds between looks")
    parser.add_argument("--folder", type=Path, default=Path(".var/soak"))
    parser.add_argument(
        "--table", type=Path, help="prints the table of a run's samples and does nothing else"
    )
    given = parser.parse_args()
    if given.day * given.pace > DAY / 2:
        parser.error(
            "a day of traffic must end before its midnight: --day times --pace is more "
            "than 43,200 s"
        )
    return given


def main() -> None:
    """Prints the table at the end."""
    given = options()
    if given.table:
        print(
            "\n".join(
                report([json.loads(text) for text in given.table.read_text().splitlines()], given)
            )
        )
        return
    soak = Soak(given)
    signal.signal(signal.SIGTERM, lambda *_: soak.over.set())
    print(f"process {os.getpid()}: samples in {soak.folder / 'samples.jsonl'}", flush=True)
    try:
        soak.run()
    finally:
        books = soak.close()
    print("\n".join(report(soak.samples, given)))
    print(f"books at the end: {books}", flush=True)


if __name__ == "__main__":
    main()
