"""Load of two projects of one dashboard: one sends reports and reads pages like a person, the other
is hostile in five ways."""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from contextlib import ExitStack
from typing import Any

import psycopg
from compilewatch.wire.codec import deflate, dumps

from tests.bench.bench_fairness import POISON, REFUSED
from tests.bench.line import Line
from tests.bench.page_reader import Pages, Repeated, ask, project_id, session_cookie
from tests.dashboard.requests import region_make, request_make
from tests.flow.slow_clients import shapes, slow_clients
from tests.flow.stack import POSTGRESQL
from tests.hostile.mutations import mutant

RATE, TIMES, INSTANCES = 20.0, 10, 60
"""Reports per second of the first project, and the factor of the hostile project's flood."""
SPOILED, REFUSED_A_SECOND, SLOW = 20.0, 10.0, 50
CALLS = 2000
"""Calls per report of the generator: two buckets of a thousand."""


class Flood:
    """The report generator in the hands of a hostile project."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def end(self) -> str:
        """The results of the generator."""
        found = json.loads(self._process.communicate()[0])
        return f"flood: acknowledged {found['rate']:.0f}/s, refused {found['refused'] or 'none'}"


class Crowd:
    """Slow clients of each shape."""

    def __init__(self, port: int, key: str) -> None:
        self._open = ExitStack()
        for first in shapes(key).values():
            self._open.enter_context(slow_clients(port, first, count=SLOW))

    def end(self) -> str:
        """Closes the slow clients."""
        self._open.close()
        return f"slow clients: {SLOW} of each of {len(shapes(''))} shapes"


class Tenants:
    """The dashboard, with the projects `bench` and `hostile`."""

    def __init__(self) -> None:
        self.line = Line("postgresql")
        printed = self.line.manage("setup_project", "--name", "hostile", "--user", "eve")
        self.keys = {"bench": self.line.key, "hostile": re.search(r"cw_ing_\w+", printed)[0]}  # type: ignore[index]
        self.acknowledged, self.port = 0, self.line.port
        self.line.rows(REFUSED)
        self.line.serve("granian")
        self.line.worker(concurrency=2)

    def honest_start(self, *, seconds: float) -> subprocess.Popen[str]:
        """Starts the reports of the first project."""
        self.line.key = self.keys["bench"]
        return self.line.load_start(seconds=seconds, connections=4, instances=INSTANCES, rate=RATE)

    def hostile_start(self, *, seconds: float) -> list[Any]:
        """Starts all activity of the hostile project."""
        self.line.key = key = self.keys["hostile"]
        flood = Flood(
            self.line.load_start(
                seconds=seconds, connections=64, instances=10 * INSTANCES, rate=TIMES * RATE
            )
        )
        rnd, good = random.Random(7), json.loads(dumps(request_make(end=time.time())))

        def spoiled(number: int) -> int:
            body, packed = mutant(rnd, good)
            return ask(self.port, "POST", "/api/v1/reports", sent(key, packed), body)

        def refused(number: int) -> int:
            request = request_make(
                version=str(number % 16),
                instance=number % 320,
                end=time.time(),
                window=10.0,
                first_seq=number,
            )
            request.reports[0].regions = [region_make(calls=POISON)]
            return ask(
                self.port, "POST", "/api/v1/reports", sent(key, True), deflate(dumps(request))
            )

        repeated = [
            Repeated("corrupted bodies", SPOILED, spoiled),
            Repeated("reports that the database rejects", REFUSED_A_SECOND, refused),
        ]
        pages = Pages(
            self.port,
            session_cookie(self.line, "eve"),
            ["/p/hostile/", "/p/hostile/?range=30d", "/p/hostile/weeks/", "/p/hostile/findings/"],
        )
        for one in (*repeated, pages):
            one.start()
        return [flood, *repeated, pages, Crowd(self.port, key)]

    def ledger_differs(self) -> int:
        """Difference between the stored and the acknowledged calls of the first project, after
        everything is folded."""
        project, until = project_id(self.line, "bench"), time.monotonic() + 120
        while (
            self.line.rows(f"SELECT 1 FROM ingest_inbox WHERE project_id = {project} LIMIT 1")
            and time.monotonic() < until
        ):
            time.sleep(0.5)
        stored = self.line.rows(
            f"SELECT coalesce(sum(calls), 0) FROM region_minute WHERE project_id = {project}"
        )[0][0]
        return abs(int(stored) - CALLS * self.acknowledged)

    def close(self) -> None:
        """Ends everything."""
        self.line.close()


def lags(line: Line, project: int, *, seconds: float) -> list[float]:
    """Wait of each report of the project that is folded in this time. A report that still waits
    counts with its age."""
    waiting: dict[int, float] = {}
    found, until = list[float](), time.monotonic() + seconds
    with psycopg.connect(dbname=line.name, autocommit=True, **POSTGRESQL) as connection:
        while time.monotonic() < until:
            rows = connection.execute(
                "SELECT id, extract(epoch FROM received_at)::float8 FROM ingest_inbox "
                "WHERE project_id = %s",
                [project],
            )
            now, here = time.time(), dict(rows.fetchall())
            found += [now - at for id, at in waiting.items() if id not in here]
            waiting = here
            time.sleep(0.05)
    return found + [time.time() - at for at in waiting.values() if time.time() - at > 3.0]


def sent(key: str, packed: bool) -> dict[str, str]:
    """The headers of a report."""
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"} | (
        {"Content-Encoding": "gzip"} if packed else {}
    )
