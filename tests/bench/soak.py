"""Soak test: two days of a dashboard and its agents in two hours, with faults: `python -m
tests.bench.soak --minutes 120 [--pace 10] [--seed N]`.

Time compression. Agents send each second of real time, ten times as often as usual. All clocks (of
the dashboard by `dashboard.common.clock`, of the agents by `time.time`) run `pace` times as fast
during the `--day` real seconds of a day's traffic; then the clock jumps to noon of the next day.
Nights are skipped, so that enough days end within two hours for retention to drop the data that it
keeps for 8 and for 35 days. Waits, time limits and intervals of processes stay in real time; the
scheduler sends tasks with an interval of more than a day once a day (`soak_pace`). A day therefore
has only some minutes of traffic: tables reach the size of that many such days, not of real days. PostgreSQL
vacuums by its own, real clock.

Web and worker each run twice. The second process of each is killed during the whole run. The
first is only affected by faults of Redis, PostgreSQL and the network, since a process that restarts
every few minutes cannot show growth; the first is also killed during the first eighth of the run.
Two jobs last. Two others are killed or terminated, and return with another version.

Each minute adds a line to samples.jsonl. The table at the end (also on SIGTERM) covers the last
life of each process after its first minutes, and tables from the time when retention has started to
drop the oldest rows. `--table FILE` prints the table of such a file."""

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

import tests.environment  # noqa: F401  # selects the Redis
from tests.bench.soak_books import Books
from tests.bench.soak_clock import DAY, clock, written
from tests.bench.soak_crowd import Crowd
from tests.bench.soak_line import KILLED, LASTING, SoakLine, TwoDoors
from tests.bench.soak_samples import folder_of, look
from tests.bench.soak_table import lines, lives
from tests.faults.schedule import network

KEPT = {"instance_minutes": 8, "version_minutes": 8, "compile_events": 8, "version_hours": 35}
SETTLED = 25 / 60
"""Hours after which a process has reached its size: an instance that no longer reports is removed
from memory within 20 minutes, so memory is level afterwards."""
PAGES = ("/p/flow/", "/p/flow/alerts/", "/p/flow/health/")
LIVES = 4
"""Lifetime of a version in days."""


class Soak:
    """The dashboard, its jobs, and the faults."""

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
        """Seconds since the start."""
        return time.time() - self.began

    @property
    def day(self) -> int:
        """Days since the start."""
        return int(self.passed // self.given.day)

    def run(self) -> None:
        """Runs until the time is over or the process is stopped."""
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
        """Ends one of the two guest jobs by a random signal, and starts it again."""
        while not self.over.wait(self.chance.uniform(0.5, 2.0) * self.given.day):
            name = self.chance.choice(("guest-1", "guest-2"))
            how = self.chance.choice((signal.SIGKILL, signal.SIGTERM))
            self.jobs[name].send_signal(how)
            self.jobs[name].wait(60)
            self.fired[f"job {how.name}"] += 1
            self._job(name)

    def _visits(self) -> None:
        """A person signs in and reads pages."""
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
        """Runs a sample or a fault; prints and counts a failure, and continues."""
        try:
            step(*words)
        except Exception:  # noqa: BLE001 - one failed sample must not end a run of two hours
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
        """Ends the jobs, waits for the folds, and compares the ledgers a last time; no process
        remains, even after an error."""
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
    """The results of a run, from its samples."""
    kept = (KEPT["version_hours"] + 2) * given.day / 3600
    last = samples[-1]
    yield (
        f"{last['at'] / 60:.0f} min, {last['day']} days of {given.day * given.pace / 60:g} min "
        f"of traffic; {len(samples)} samples"
    )
    yield from lines(samples, settled=SETTLED, kept=kept)
    yield from lives(samples, "worker-1")
    yield f"faults: {last['fired']}; restarts: {last['restarts']}"
    yield (
        "partitions now: "
        f"{ {name: parts[0] for name, parts in last['tables'].items() if parts[0] > 1} }"
    )
    yield (
        f"ledgers: {last['books']}; maximum lost in any "
        f" sample {max(one['books']['lost'] for one in samples)}"
    )


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--pace", type=float, default=10)
    parser.add_argument(
        "--day", type=float, default=72, help="real seconds of a day's traffic; nights are skipped"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=60, help="real seconds between samples")
    parser.add_argument("--folder", type=Path, default=Path(".var/soak"))
    parser.add_argument("--table", type=Path, help="only print the table of these samples")
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
    print(f"ledgers at the end: {books}", flush=True)


if __name__ == "__main__":
    main()
