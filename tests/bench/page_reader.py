"""A signed-in person who reads one page after another of a dashboard under test, and other actions
that repeat at a fixed rate."""

from __future__ import annotations

import http.client
import re
import time
from collections import Counter
from collections.abc import Callable
from statistics import quantiles
from threading import Event, Thread

from tests.bench.line import Line

PAGES_A_SECOND = 1.0
COOKIE = """
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
client = Client()
client.force_login(get_user_model().objects.get(username={user!r}))
print("cookie", settings.SESSION_COOKIE_NAME, client.cookies[settings.SESSION_COOKIE_NAME].value)
"""


class Repeated(Thread):
    """Repeats an action at a fixed rate until it is stopped, and counts the results."""

    def __init__(self, name: str, rate: float, do: Callable[[int], object]) -> None:
        super().__init__(daemon=True)
        self.what, self.counts = name, Counter[object]()
        self._rate, self._do, self._stopping = rate, do, Event()

    def run(self) -> None:
        """Skips runs that are late, so that a slow response causes no burst."""
        began, number = time.monotonic(), 0
        while not self._stopping.wait(max(0.0, began + number / self._rate - time.monotonic())):
            number = max(number + 1, int((time.monotonic() - began) * self._rate))
            try:
                self.counts[self._do(number)] += 1
            except (OSError, http.client.HTTPException) as error:
                self.counts[type(error).__name__] += 1

    def end(self) -> str:
        """The counted results."""
        self._stopping.set()
        self.join(30)
        return f"{self.what}: {dict(self.counts)}"


class Pages:
    """A person who reads one page after another."""

    def __init__(
        self, port: int, cookie: str, paths: list[str], rate: float = PAGES_A_SECOND
    ) -> None:
        self.seconds, self.failed = list[float](), 0
        self._port, self._cookie, self._paths = port, cookie, paths
        self._repeated = Repeated("pages", rate, self._read)

    def _read(self, number: int) -> int:
        began = time.monotonic()
        status = ask(
            self._port, "GET", self._paths[number % len(self._paths)], {"Cookie": self._cookie}
        )
        self.seconds.append(time.monotonic() - began)
        self.failed += status != 200
        return status

    def start(self) -> None:
        """Starts the reading."""
        self._repeated.start()

    def stop(self) -> None:
        """Stops the reading; a request without a response counts as failed."""
        self.end()
        self.failed += sum(
            count for what, count in self._repeated.counts.items() if not isinstance(what, int)
        )

    def end(self) -> str:
        """The counted results."""
        return self._repeated.end()


def p95(values: list[float]) -> float:
    """The 95th percentile."""
    return quantiles(values, n=20)[-1]


def project_id(line: Line, slug: str) -> int:
    """The ID of a project."""
    return int(line.rows(f"SELECT id FROM project WHERE slug = '{slug}'")[0][0])


def session_cookie(line: Line, user: str) -> str:
    """The session of a signed-in person."""
    found = re.search(
        r"^cookie (\S+) (\S+)$", line.manage("shell", "-c", COOKIE.format(user=user)), re.MULTILINE
    )
    assert found is not None
    return f"{found[1]}={found[2]}"


def paths_read(line: Line, slug: str) -> list[str]:
    """The pages that are read most; for a project without a model, its Fleet and Findings pages."""
    fleet = f"/p/{slug}/"
    models = line.rows(
        f"SELECT id FROM model WHERE project_id = {project_id(line, slug)} ORDER BY id LIMIT 3"
    )
    return [
        fleet,
        *(
            f"{fleet}models/{id}/{page}"
            for [id] in models
            for page in ("", "?range=30d", "instances/")
        ),
        f"{fleet}findings/",
    ]


def ask(
    port: int, method: str, path: str, headers: dict[str, str], body: bytes | None = None
) -> int:
    """The status of one request on a new connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()
