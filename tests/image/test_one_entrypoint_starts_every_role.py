"""The image's entrypoint, run here as it stands: each word becomes its process, and together they take a report and fold it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import psycopg
import pytest
from compilewatch.wire.codec import encode
from compilewatch.wire.report import Identity, Region, Report
from compilewatch.wire.sketch import Sketch

from dashboard.common import clock
from tests.flow.stack import POSTGRESQL, REPOSITORY, Stack, wait_for

ENTRYPOINT = str(REPOSITORY / "docker/entrypoint")
HOST = "compilewatch.example.com"


class Containers:
    """Processes started by the entrypoint alone, each with a folder for its temporary files."""

    def __init__(self, folder: Path) -> None:
        self.stack = Stack(database="postgresql", folder=folder, outbound="")
        self.environment = {
            **self.stack.environment,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "COMPILEWATCH_LISTEN": "127.0.0.1",
            "COMPILEWATCH_HOSTS": HOST,
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def run(self, *words: str, place: str = "once") -> subprocess.CompletedProcess[str]:
        """A role that ends by itself."""
        return subprocess.run([ENTRYPOINT, *words], env=self._environment(place), capture_output=True, text=True, timeout=300)

    def start(self, role: str) -> None:
        """A role that stays."""
        with (self.stack.folder / f"{role}.log").open("ab") as log:
            self.running[role] = subprocess.Popen([ENTRYPOINT, role], env=self._environment(role), stdout=log, stderr=log)

    def _environment(self, place: str) -> dict[str, str]:
        folder = self.stack.folder / place
        folder.mkdir(exist_ok=True)
        return {**self.environment, "TMPDIR": str(folder)}

    def stop(self) -> dict[str, int]:
        """SIGTERM to each, as a supervisor does; the exit statuses."""
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        return {role: process.wait(120) for role, process in self.running.items()}

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()
        with psycopg.connect(dbname="postgres", autocommit=True, **POSTGRESQL) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{self.stack.name}" WITH (FORCE)')


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[Containers]:
    made = Containers(tmp_path)
    yield made
    made.close()


def send(port: int, key: str) -> tuple[int, bytes]:
    """One report of three calls, to the name that the dashboard has; the answer."""
    now = clock.unix()
    who = Identity("0" * 26, now - 600, "ranker", "1", gpu="NVIDIA H200", host="host", torch="2.13.0")
    report = Report((1, 1), (now - 10, now), regions=[Region("forward", 3, compiled=3, sampled=3, latency=Sketch.of([0.01] * 3))])
    body = json.dumps({"v": 1, "sent": now, "instance": encode(who), "reports": [encode(report)]}).encode()
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Host": HOST}
    connection.request("POST", "/api/v1/reports", body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_the_four_roles_take_a_report_and_fold_it(containers: Containers) -> None:
    migrated = containers.run("migrate")
    assert migrated.returncode == 0, migrated.stderr
    said = containers.run("manage", "setup_project", "--name", "Flow", "--user", "ada").stdout
    key = next(word for word in said.split() if word.startswith("cw_ing_"))
    for role in ("web", "worker", "beat"):
        containers.start(role)
    wait_for("web is alive", lambda: containers.run("alive", place="web").returncode == 0, seconds=120, every=1)

    status, answer = send(containers.stack.port, key)
    assert (status, b'"acked":[[1,1]]' in answer) == (200, True), answer
    folded = "SELECT sum(calls) FROM version_minute"
    wait_for("the report is folded", lambda: containers.stack.rows(folded) == [(3,)], seconds=120)
    assert containers.stop() == {"web": 0, "worker": 0, "beat": 0}


def test_a_word_that_is_no_role_is_refused_with_the_ones_that_are(containers: Containers) -> None:
    refused = containers.run("wbe")
    assert (refused.returncode, "expected web, worker, beat, migrate" in refused.stderr) == (64, True)


def test_a_setting_that_is_missing_ends_a_role_with_its_name(containers: Containers) -> None:
    del containers.environment["COMPILEWATCH_REDIS_URL"]
    for role in ("web", "worker", "beat", "migrate"):
        ended = containers.run(role)
        assert ended.returncode != 0 and "COMPILEWATCH_REDIS_URL is missing" in ended.stderr and "Traceback" not in ended.stderr, ended
