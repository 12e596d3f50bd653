"""A dashboard for a benchmark: its own database, the web process under a chosen server, and the
resource use of each part."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Collection
from pathlib import Path
from typing import Any

import psycopg

import tests.environment  # noqa: F401  # selects the Redis
from tests.flow.stack import POSTGRESQL, REDIS_URL, free_port

REPOSITORY = Path(__file__).resolve().parents[2]
BINARIES = Path(sys.executable).parent
OURS = "dashboard.asgi:application"
TICKS = os.sysconf("SC_CLK_TCK")


class Line:
    """The processes of one dashboard; `database` is postgresql or sqlite. If cores are named, the
    processes run only on these cores."""

    def __init__(self, database: str, cores: Collection[int] = ()) -> None:
        self.database, self.port, self._cores = database, free_port(), cores
        self.folder = Path(tempfile.mkdtemp(prefix="compilewatch-bench-"))
        self.name = f"compilewatch_bench_{secrets.token_hex(4)}"
        self.key = ""
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith("COMPILEWATCH_")
            },
            "COMPILEWATCH_DATA": str(self.folder),
            "COMPILEWATCH_PORT": str(self.port),
            "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'agents'}",
        }
        if database == "postgresql":
            self._postgresql()
        self.manage("migrate", "--verbosity=0")
        printed = self.manage("setup_project", "--name", "Bench", "--user", "ada")
        self.key = re.search(r"cw_ing_\w+", printed)[0]  # type: ignore[index]
        self.environment["BENCH_KEY"] = self.key

    def _postgresql(self) -> None:
        with psycopg.connect(dbname="postgres", autocommit=True, **POSTGRESQL) as connection:
            connection.execute(f'CREATE DATABASE "{self.name}"')
        self.environment |= {
            "COMPILEWATCH_MODE": "full",
            "COMPILEWATCH_DATABASE_URL": "postgresql://{user}@{host}:{port}/{name}".format(
                name=self.name, **POSTGRESQL
            ),
            "COMPILEWATCH_REDIS_URL": REDIS_URL,
            "COMPILEWATCH_HOSTS": "127.0.0.1",
            "COMPILEWATCH_BASE_URL": f"http://127.0.0.1:{self.port}",
            "COMPILEWATCH_SECRET_KEY": secrets.token_urlsafe(48),
            "COMPILEWATCH_KEY_PEPPER": secrets.token_urlsafe(48),
        }

    @property
    def url(self) -> str:
        """The URL for reports."""
        return f"http://127.0.0.1:{self.port}/api/v1/reports"

    def manage(self, *arguments: str) -> str:
        """The output of a management command."""
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command,
            cwd=REPOSITORY,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def start(self, role: str, command: list[str]) -> subprocess.Popen[bytes]:
        """Starts one process; its output goes to a file named after it."""
        with (self.folder / f"{role}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=REPOSITORY,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if self._cores:
            os.sched_setaffinity(process.pid, self._cores)
        self.processes[role] = process
        return process

    def serve(
        self, server: str, application: str = OURS, *, workers: int = 2
    ) -> subprocess.Popen[bytes]:
        """Starts the web process under gunicorn or granian, or the whole embedded server, and waits
        until it responds."""
        if server == "embedded":
            process = self.start("web", [sys.executable, "manage.py", "serve"])
        else:
            process = self.start("web", web_command(server, application, self.port, workers))
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5)
                return process
            except urllib.error.HTTPError:
                return process
            except OSError:
                time.sleep(0.1)
        raise SystemExit(
            f"{server} does not respond:\n{(self.folder / 'web.log').read_text()[-2000:]}"
        )

    def worker(self, name: str = "worker", concurrency: int = 1) -> None:
        """Starts a Celery worker."""
        celery = [
            str(BINARIES / "celery"),
            "-A",
            "dashboard.celery",
            "--quiet",
            "worker",
            "--hostname",
            f"{name}@%h",
        ]
        self.start(name, [*celery, "--concurrency", str(concurrency), "--loglevel", "WARNING"])

    def load(
        self,
        *,
        seconds: float,
        connections: int = 32,
        instances: int = 0,
        rate: float = 0,
        ledger: str = "",
    ) -> dict[str, Any]:
        """Loads the endpoint from a separate process and returns the results of the generator."""
        process = self.load_start(
            seconds=seconds, connections=connections, instances=instances, rate=rate, ledger=ledger
        )
        found: dict[str, Any] = json.loads(process.communicate()[0])
        return found

    def load_start(
        self,
        *,
        seconds: float,
        connections: int = 32,
        instances: int = 0,
        rate: float = 0,
        ledger: str = "",
    ) -> subprocess.Popen[str]:
        """Starts the load and returns the running generator."""
        command = [
            sys.executable,
            "-m",
            "tests.bench.load_reports",
            self.url,
            "--key",
            self.key,
            "--json",
        ]
        command += [
            "--seconds",
            str(seconds),
            "--connections",
            str(connections),
            "--instances",
            str(instances),
            "--rate",
            str(rate),
        ]
        command += ["--seed", str(secrets.randbits(30))] + (["--ledger", ledger] if ledger else [])
        return subprocess.Popen(
            command, cwd=REPOSITORY, env=self.environment, stdout=subprocess.PIPE, text=True
        )

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        if self.database == "sqlite":
            import sqlite3

            with (
                contextlib.closing(
                    sqlite3.connect(self.folder / "compilewatch.sqlite3", timeout=30)
                ) as connection,
                connection,
            ):
                return connection.execute(sql).fetchall()
        with psycopg.connect(dbname=self.name, autocommit=True, **POSTGRESQL) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def processor(self, role: str) -> float:
        """Processor seconds of a role and its children; `database` means PostgreSQL's sessions of
        this database."""
        if role == "database":
            return sum(
                _seconds(pid)
                for pid, text in _processes()
                if text.startswith("postgres:") and f" {self.name} " in text
            )
        group = os.getpgid(self.processes[role].pid)
        return sum(_seconds(pid) for pid, _ in _processes() if _group(pid) == group)

    def stop(self, role: str, *, wait: float = 30.0) -> float:
        """Ends a role by SIGTERM; returns the seconds it took, infinite if it had to be killed."""
        process = self.processes.pop(role)
        begin = time.perf_counter()
        process.terminate()
        try:
            process.wait(wait)
            took = time.perf_counter() - begin
        except subprocess.TimeoutExpired:
            took = float("inf")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return took

    def close(self) -> None:
        """Ends everything and removes the database."""
        for role in list(self.processes):
            self.stop(role, wait=5.0)
        if self.database == "postgresql":
            with psycopg.connect(dbname="postgres", autocommit=True, **POSTGRESQL) as connection:
                connection.execute(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')
        shutil.rmtree(self.folder, ignore_errors=True)


def web_command(server: str, application: str, port: int, workers: int) -> list[str]:
    """The command that starts the web process."""
    if server == "gunicorn":
        options = [
            "-k",
            "gthread",
            "-w",
            str(workers),
            "--threads",
            "32",
            "-b",
            f"127.0.0.1:{port}",
            "--keep-alive",
            "75",
        ]
        return [
            str(BINARIES / "gunicorn"),
            *options,
            application.replace("dashboard.asgi", "dashboard.wsgi"),
        ]
    from dashboard.common.management.commands.web import words

    command = words(application=application, host="127.0.0.1", port=port, workers=workers)
    return (
        command
        if application == OURS
        else [*command, "--interface", "wsgi", "--blocking-threads", "32"]
    )


def _processes() -> list[tuple[int, str]]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                found.append(
                    (
                        int(folder.name),
                        (folder / "cmdline")
                        .read_bytes()
                        .replace(b"\0", b" ")
                        .decode(errors="replace"),
                    )
                )
            except OSError:
                continue
    return found


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return -1


def _seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS
