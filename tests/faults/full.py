"""The full dashboard on PostgreSQL with its own redis-server, a supervisor for its worker, and
continuous reports."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import redis
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import VERSION, Request

from dashboard.demo.simulated_fleet import SimulatedInstance, build_fleet, build_instances
from tests.flow.stack import POSTGRESQL, REPOSITORY, Stack, answer_of, free_port
from tests.machine import need


class RedisServer:
    """A redis-server that a test may stop, kill or fill."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.port = folder, free_port()
        self._process = self._begun()

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def client(self) -> redis.Redis:
        """A connection to the server."""
        return redis.Redis(port=self.port, socket_timeout=5)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the server."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """kill -9; all data is lost."""
        self._process.kill()
        self._process.wait()

    def start(self) -> None:
        """Starts the server again, empty."""
        self._process = self._begun()

    def _begun(self, *more: str) -> subprocess.Popen[bytes]:
        need("Redis's program")
        words = [
            "redis-server",
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            self._folder,
        ]
        return subprocess.Popen([*words, *more], stdout=subprocess.DEVNULL)


class FullStack(Stack):
    """Web and worker as processes; the worker is `tests.faults.quick_worker` with a faster
    watchdog."""

    def __init__(self, folder: Path) -> None:
        self.redis = RedisServer(folder)
        super().__init__(database="postgresql", folder=folder, outbound="127.0.0.1:9")
        self.environment["COMPILEWATCH_REDIS_URL"] = self.redis.url
        self.restarts = 0
        self._ending = threading.Event()

    def start_role(self, role: str) -> None:
        """Starts a role as in any other stack, except for the worker."""
        if role != "worker":
            super().start_role(role)
            return
        with (self.folder / "worker.log").open("ab") as output:
            self.processes[role] = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.quick_worker"],
                cwd=REPOSITORY,
                env={**self.environment, "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'agents'}"},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def supervise(self) -> None:
        """Starts the worker again whenever it ends with an error, as a supervisor does."""
        threading.Thread(target=self._supervised, daemon=True).start()

    def _supervised(self) -> None:
        while not self._ending.wait(0.2):
            worker = self.processes.get("worker")
            if worker is not None and worker.poll():
                self.restarts += 1
                self.start_role("worker")

    def run(self, *statements: str) -> None:
        """Runs statements directly in the database."""
        with psycopg.connect(dbname=self.name, **POSTGRESQL) as connection:
            for statement in statements:
                connection.execute(statement)

    def log(self, role: str) -> str:
        """The output of a process."""
        return (self.folder / f"{role}.log").read_text()

    def close(self) -> None:
        """Ends everything."""
        self._ending.set()
        super().close()
        self.redis.signal(signal.SIGCONT)
        self.redis.kill()


class Traffic:
    """Reports of a small fleet, one after the other; keeps the status and duration of each
    response."""

    def __init__(self, stack: Stack, *, every: float) -> None:
        self._stack, self._every = stack, every
        self._fleet = [self._instance(number) for number in range(4)]
        self.answers: list[tuple[float, int, float]] = []
        self.calls = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops sending."""
        self._ending.set()
        self._thread.join(60)

    def statuses(self) -> set[int]:
        """All statuses of the responses."""
        return {status for _, status, _ in self.answers}

    def p99(self, since: float = 0.0, until: float = float("inf")) -> float:
        """The p99 in seconds, of requests that began within an interval of the monotonic clock."""
        took = sorted(seconds for began, _, seconds in self.answers if since <= began < until)
        return took[int(0.99 * (len(took) - 1))]

    def _instance(self, number: int) -> SimulatedInstance:
        return build_instances(
            build_fleet(judged_minutes=40)[:1], start_minute=int(time.time() // 60) + number
        )[number]

    def _run(self) -> None:
        sent = 0
        while not self._ending.wait(self._every):
            instance = self._fleet[sent % len(self._fleet)]
            sent += 1
            now = time.time()
            report = instance.report(seq=sent, start=now - 10, end=now)
            body = dumps(Request(VERSION, now, instance.identity, [report]))
            began = time.monotonic()
            status, _ = answer_of(self._stack.port, self._stack.key, body)
            self.answers.append((began, status, time.monotonic() - began))
            if status == 200:
                self.calls += sum(region.calls for region in report.regions)
