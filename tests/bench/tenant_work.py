"""Two projects of one dashboard at work: one that sends and reads as people do, and one that does harm in five ways."""

from __future__ import annotations

import http.client
import json
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from threading import Event, Thread
from typing import Any

import psycopg
from compilewatch.wire.codec import deflate, dumps

from tests.bench.bench_fairness import POISON, REFUSED
from tests.bench.line import Line
from tests.dashboard.requests import region_make, request_make
from tests.flow.slow_clients import shapes, slow_clients
from tests.flow.stack import POSTGRESQL
from tests.hostile.mutations import mutant

RATE, TIMES, INSTANCES = 20.0, 10, 60
"""Reports a second of the first project; the hostile one floods with so many times that."""
SPOILED, REFUSED_A_SECOND, PAGES_A_SECOND, SLOW = 20.0, 10.0, 1.0, 50
CALLS = 2000
"""Of each report of the generator: two buckets of a thousand."""
COOKIE = """
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
client = Client()
client.force_login(get_user_model().objects.get(username={user!r}))
print("cookie", settings.SESSION_COOKIE_NAME, client.cookies[settings.SESSION_COOKIE_NAME].value)
"""


class Repeated(Thread):
    """Does one thing so many times a second until it is ended, and counts what came of it."""

    def __init__(self, name: str, rate: float, do: Callable[[int], object]) -> None:
        super().__init__(daemon=True)
        self.what, self.counts = name, Counter[object]()
        self._rate, self._do, self._stopping = rate, do, Event()

    def run(self) -> None:
        """Skips what could not be done in time, so that a slow answer does not make a burst."""
        began, number = time.monotonic(), 0
        while not self._stopping.wait(max(0.0, began + number / self._rate - time.monotonic())):
            number = max(number + 1, int((time.monotonic() - began) * self._rate))
            try:
                self.counts[self._do(number)] += 1
            except (OSError, http.client.HTTPException) as error:
                self.counts[type(error).__name__] += 1

    def end(self) -> str:
        """What it did."""
        self._stopping.set()
        self.join(30)
        return f"{self.what}: {dict(self.counts)}"


class Flood:
    """The generator of reports as a hostile project uses it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def end(self) -> str:
        """What it counted."""
        found = json.loads(self._process.communicate()[0])
        return f"flood: acknowledged {found['rate']:.0f}/s, refused {found['refused'] or 'none'}"


class Crowd:
    """Slow clients of each shape."""

    def __init__(self, port: int, key: str) -> None:
        self._open = ExitStack()
        for first in shapes(key).values():
            self._open.enter_context(slow_clients(port, first, count=SLOW))

    def end(self) -> str:
        """Closes them."""
        self._open.close()
        return f"slow clients: {SLOW} of each of {len(shapes(''))} shapes"


class Pages:
    """A person who reads page after page."""

    def __init__(self, port: int, cookie: str, paths: list[str], rate: float = PAGES_A_SECOND) -> None:
        self.seconds, self.failed = list[float](), 0
        self._port, self._cookie, self._paths = port, cookie, paths
        self._repeated = Repeated("pages", rate, self._read)

    def _read(self, number: int) -> int:
        began = time.monotonic()
        status = ask(self._port, "GET", self._paths[number % len(self._paths)], {"Cookie": self._cookie})
        self.seconds.append(time.monotonic() - began)
        self.failed += status != 200
        return status

    def start(self) -> None:
        """From now on."""
        self._repeated.start()

    def stop(self) -> None:
        """No page any more; an answer that did not come counts as failed."""
        self.end()
        self.failed += sum(count for what, count in self._repeated.counts.items() if not isinstance(what, int))

    def end(self) -> str:
        """What it did."""
        return self._repeated.end()


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
        self.line.beat()
        self._cookies: dict[str, str] = {}

    def project(self, slug: str) -> int:
        """Its number."""
        return int(self.line.rows(f"SELECT id FROM project WHERE slug = '{slug}'")[0][0])

    def cookie(self, user: str) -> str:
        """The session of a person who signed in."""
        if user not in self._cookies:
            found = re.search(r"^cookie (\S+) (\S+)$", self.line.manage("shell", "-c", COOKIE.format(user=user)), re.MULTILINE)
            assert found is not None
            self._cookies[user] = f"{found[1]}={found[2]}"
        return self._cookies[user]

    def paths(self, slug: str) -> list[str]:
        """The pages that are read most; of a project without a model its Fleet alone."""
        fleet = f"/p/{slug}/"
        models = self.line.rows(f"SELECT id FROM model WHERE project_id = {self.project(slug)} ORDER BY id LIMIT 3")
        return [fleet, *(f"{fleet}models/{id}/{page}" for [id] in models for page in ("", "?range=30d", "instances/")), f"{fleet}findings/"]

    def honest_start(self, *, seconds: float) -> subprocess.Popen[str]:
        """The reports of the first project."""
        self.line.key = self.keys["bench"]
        return self.line.load_start(seconds=seconds, connections=4, instances=INSTANCES, rate=RATE)

    def hostile_start(self, *, seconds: float) -> list[Any]:
        """Everything that the hostile project does."""
        self.line.key = key = self.keys["hostile"]
        flood = Flood(self.line.load_start(seconds=seconds, connections=64, instances=10 * INSTANCES, rate=TIMES * RATE))
        rnd, good = random.Random(7), json.loads(dumps(request_make(end=time.time())))

        def spoiled(number: int) -> int:
            body, packed = mutant(rnd, good)
            return ask(self.port, "POST", "/api/v1/reports", sent(key, packed), body)

        def refused(number: int) -> int:
            request = request_make(version=str(number % 16), instance=number % 320, end=time.time(), window=10.0, first_seq=number)
            request.reports[0].regions = [region_make(calls=POISON)]
            return ask(self.port, "POST", "/api/v1/reports", sent(key, True), deflate(dumps(request)))

        repeated = [
            Repeated("spoiled bodies", SPOILED, spoiled),
            Repeated("reports that the database refuses", REFUSED_A_SECOND, refused),
        ]
        pages = Pages(self.port, self.cookie("eve"), ["/p/hostile/", "/p/hostile/?range=30d", "/p/hostile/weeks/", "/p/hostile/findings/"])
        for one in (*repeated, pages):
            one.start()
        return [flood, *repeated, pages, Crowd(self.port, key)]

    def ledger_differs(self) -> int:
        """Calls of the first project that are stored and were not acknowledged, or the other way round, once all is folded."""
        project, until = self.project("bench"), time.monotonic() + 120
        while self.line.rows(f"SELECT 1 FROM ingest_inbox WHERE project_id = {project} LIMIT 1") and time.monotonic() < until:
            time.sleep(0.5)
        stored = self.line.rows(f"SELECT coalesce(sum(calls), 0) FROM region_minute WHERE project_id = {project}")[0][0]
        return abs(int(stored) - CALLS * self.acknowledged)

    def close(self) -> None:
        """Ends everything."""
        self.line.close()


def lags(line: Line, project: int, *, seconds: float) -> list[float]:
    """How long each report of the project waited that was folded within the time; one that still waits counts with its age."""
    waiting: dict[int, float] = {}
    found, until = list[float](), time.monotonic() + seconds
    with psycopg.connect(dbname=line.name, autocommit=True, **POSTGRESQL) as connection:
        while time.monotonic() < until:
            rows = connection.execute(
                "SELECT id, extract(epoch FROM received_at)::float8 FROM ingest_inbox WHERE project_id = %s", [project]
            )
            now, here = time.time(), dict(rows.fetchall())
            found += [now - at for id, at in waiting.items() if id not in here]
            waiting = here
            time.sleep(0.05)
    return found + [time.time() - at for at in waiting.values() if time.time() - at > 3.0]


def sent(key: str, packed: bool) -> dict[str, str]:
    """The headers of a report."""
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"} | ({"Content-Encoding": "gzip"} if packed else {})


def ask(port: int, method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> int:
    """The status of one request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()
