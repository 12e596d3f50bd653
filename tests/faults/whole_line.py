"""A dashboard whose every process can die: each is restarted as by a supervisor, on its own
PostgreSQL and Redis."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import threading
import time
from collections import Counter
from pathlib import Path

import psycopg

from tests.faults.cluster import Cluster, children
from tests.faults.private_redis import PrivateRedis
from tests.flow.stack import REPOSITORY, Stack, wait_for

RESTARTED_AFTER = 0.3
WORKERS = ("worker-1", "worker-2")


class WholeLine(Stack):
    """`database` is sqlite (one process) or postgresql (web and two workers). Files in
    `armed` arm the crash points."""

    def __init__(self, *, database: str, folder: Path, outbound: str) -> None:
        self.postgresql = Cluster() if database == "postgresql" else None
        if self.postgresql:
            self.postgresql.start()
        self.redis = PrivateRedis(folder) if database == "postgresql" else None
        super().__init__(
            database=database,
            folder=folder,
            outbound=outbound,
            server=self.postgresql.address if self.postgresql else None,
            redis_url=self.redis.url if self.redis else "",
        )
        self.armed = folder / "armed"
        self.armed.mkdir()
        self.environment |= {
            "COMPILEWATCH_TEST_ARMED": str(self.armed),
            "DJANGO_SETTINGS_MODULE": "tests.faults.crash_settings",
            "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'agents'}",
        }
        self.restarts: Counter[str] = Counter()
        self.one_at_a_time = {"redis": threading.Lock(), "postgresql": threading.Lock()}
        """Serializes stops of these servers: one thread stops and restarts a server before another
        thread stops it."""
        self._guard = threading.RLock()
        self._over = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)

    def start(self, *, channel: str) -> None:
        """Starts all processes; from now on each process is restarted when it ends."""
        super().start(channel=channel)
        self._supervisor.start()

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of the processes."""
        return ("everything",) if self.database == "sqlite" else ("web", *WORKERS)

    def strike(self, role: str) -> None:
        """SIGKILL to a process and all its children."""
        with self._guard, contextlib.suppress(KeyError, ProcessLookupError):
            os.killpg(self.processes[role].pid, signal.SIGKILL)

    def strike_head(self, role: str) -> None:
        """SIGKILL to the process only; its children become orphans."""
        with self._guard, contextlib.suppress(KeyError, ProcessLookupError):
            os.kill(self.processes[role].pid, signal.SIGKILL)

    def strike_child(self, role: str, chance: float) -> None:
        """SIGKILL to one child of the process."""
        with self._guard, contextlib.suppress(KeyError, ProcessLookupError, IndexError):
            started = sorted(children(self.processes[role].pid))
            os.kill(started[int(chance * len(started))], signal.SIGKILL)

    def rows_write(self, sql: str) -> None:
        """Changes rows directly in the database."""
        if self.database == "sqlite":
            with (
                contextlib.closing(
                    sqlite3.connect(self.folder / "compilewatch.sqlite3", timeout=60)
                ) as file,
                file,
            ):
                file.execute(sql)
            return
        with psycopg.connect(dbname=self.name, **self.server) as connection:
            connection.execute(sql)

    def ready(self) -> bool:
        """True if every process runs and the web process can work."""
        with self._guard:
            running = all(
                role in self.processes and self.processes[role].poll() is None
                for role in self.roles
            )
        return running and self.status("/readyz") == 200

    def settle(self) -> None:
        """Waits until everything runs again."""
        wait_for("everything runs again", self.ready, seconds=120, every=0.05)

    def close(self) -> None:
        """Ends every process, and the servers that were started for it."""
        self._over.set()
        if self._supervisor.is_alive():
            self._supervisor.join(60)
        for role in list(self.processes):
            self.kill(role)
        if self.postgresql:
            self.postgresql.close()
        if self.redis:
            self.redis.close()

    def _supervise(self) -> None:
        while not self._over.wait(0.05):
            for role in self.roles:
                if self.processes[role].poll() is not None:
                    self._again(role)

    def _again(self, role: str) -> None:
        with contextlib.suppress(ProcessLookupError):
            # A supervisor ends the remaining processes of a service before it restarts the service;
            # they would hold the port.
            os.killpg(self.processes[role].pid, signal.SIGKILL)
        time.sleep(RESTARTED_AFTER)
        with self._guard:
            self.start_role(role)
            self.restarts[role] += 1
