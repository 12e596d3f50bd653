"""The roles of the entrypoint as processes with a separate environment and folder, and one report
for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import psycopg
from compilewatch.wire.codec import encode
from compilewatch.wire.messages import Identity, Region, Report
from compilewatch.wire.sketch import Sketch

from dashboard.common import clock
from tests.flow.stack import POSTGRESQL, REPOSITORY, Stack

ENTRYPOINT = str(REPOSITORY / "docker/entrypoint")
HOST = "compilewatch.example.com"


class Containers:
    """Processes started only by the entrypoint, each with a folder for its temporary files."""

    def __init__(self, folder: Path) -> None:
        self.stack = Stack(database="postgresql", folder=folder, outbound="")
        self.environment = {
            **self.stack.environment,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "COMPILEWATCH_LISTEN": "127.0.0.1",
            "COMPILEWATCH_HOSTS": HOST,
            "COMPILEWATCH_BASE_URL": f"https://{HOST}",
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def run(self, *words: str, place: str = "once") -> subprocess.CompletedProcess[str]:
        """Runs a role until it ends."""
        command = self.command(*self.entrypoint, *words)
        return subprocess.run(
            command, env=self.environment_of(place), capture_output=True, text=True, timeout=300
        )

    def start(self, role: str) -> None:
        """Starts a role that keeps running."""
        with (self.stack.folder / f"{role}.log").open("ab") as log:
            self.running[role] = subprocess.Popen(
                self.command(*self.entrypoint, role),
                env=self.environment_of(role),
                stdout=log,
                stderr=log,
            )

    @property
    def entrypoint(self) -> list[str]:
        """The entrypoint command."""
        return [ENTRYPOINT]

    def command(self, *words: str) -> list[str]:
        """The command for these words."""
        return list(words)

    def environment_of(self, place: str) -> dict[str, str]:
        """The environment of one role; a place is a folder for its temporary files."""
        folder = self.stack.folder / place
        folder.mkdir(exist_ok=True)
        return {**self.environment, "TMPDIR": str(folder)}

    def stop(self) -> dict[str, int]:
        """Sends SIGTERM to each role as a supervisor does; returns the exit statuses."""
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        return {role: process.wait(120) for role, process in self.running.items()}

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()
        with psycopg.connect(dbname="postgres", autocommit=True, **POSTGRESQL) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{self.stack.name}" WITH (FORCE)')


def send(port: int, key: str) -> tuple[int, bytes]:
    """Sends one report of three calls to the dashboard's host name; returns the response."""
    now = clock.unix()
    who = Identity(
        "0" * 26, now - 600, "ranker", "1", gpu="NVIDIA H200", host="host", torch="2.13.0"
    )
    report = Report(
        (1, 1),
        (now - 10, now),
        regions=[Region("forward", 3, compiled=3, sampled=3, latency=Sketch.of([0.01] * 3))],
    )
    body = json.dumps(
        {"v": 1, "sent": now, "instance": encode(who), "reports": [encode(report)]}
    ).encode()
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Host": HOST}
    connection.request("POST", "/api/v1/reports", body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()
