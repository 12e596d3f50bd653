"""A dashboard in its own processes: embedded on SQLite, or web and worker on PostgreSQL and
Redis."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import redis

from tests.flow.database_templates import REPOSITORY, copy_database, copy_file
from tests.machine import REDIS, need

# Redis has 16 databases; each parallel test process clears its own.
SIDE_BY_SIDE = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
REDIS_URL = REDIS._replace(path=f"/{9 + SIDE_BY_SIDE % 7}").geturl()
POSTGRESQL = {
    "user": os.environ.get("PGUSER", "postgres"),
    "host": os.environ.get("PGHOST", "127.0.0.1"),
    "port": os.environ.get("PGPORT", "5432"),
}


def free_port() -> int:
    """A port without a listener at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(what: str, seen: Callable[[], Any], *, seconds: float, every: float = 0.25) -> Any:
    """Calls a function until its result is true and returns the result; the limit only bounds the
    duration of a failure."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = seen()
        if found:
            return found
        time.sleep(every)
    raise AssertionError(f"{what} did not happen within {seconds:.0f} s")


class Stack:
    """The processes of one dashboard. `database` is sqlite or postgresql."""

    def __init__(
        self,
        *,
        database: str,
        folder: Path,
        outbound: str,
        server: dict[str, str] | None = None,
        redis_url: str = "",
    ) -> None:
        self.database, self.folder, self.port = database, folder, free_port()
        self.server, self.redis_url = server or POSTGRESQL, redis_url or REDIS_URL
        self.name = f"compilewatch_flow_{secrets.token_hex(4)}"
        self.environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith("COMPILEWATCH_")
            },
            "COMPILEWATCH_DATA": str(folder),
            "COMPILEWATCH_PORT": str(self.port),
            "COMPILEWATCH_OUTBOUND_ALLOW": outbound,
            "PYTHONUNBUFFERED": "1",
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.key = self.password = ""
        if database == "postgresql":
            self._prepare_postgresql()

    def _prepare_postgresql(self) -> None:
        need("PostgreSQL")
        need("Redis")
        with psycopg.connect(dbname="postgres", autocommit=True, **self.server) as connection:
            connection.execute(f'CREATE DATABASE "{self.name}"')
        redis.Redis.from_url(self.redis_url).flushdb()
        address = "{user}@{host}:{port}".format(**self.server)
        self.environment |= {
            "COMPILEWATCH_MODE": "full",
            "COMPILEWATCH_DATABASE_URL": f"postgresql://{address}/{self.name}",
            "COMPILEWATCH_REDIS_URL": self.redis_url,
            "COMPILEWATCH_HOSTS": "127.0.0.1",
            "COMPILEWATCH_BASE_URL": f"http://127.0.0.1:{self.port}",
            "COMPILEWATCH_SECRET_KEY": secrets.token_urlsafe(48),
            "COMPILEWATCH_KEY_PEPPER": secrets.token_urlsafe(48),
        }

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
            timeout=600,
        ).stdout

    def start(self, *, channel: str) -> None:
        """Migrates, creates a project with a key and a Slack channel, and starts every process."""
        self._migrate()
        said = self.manage("setup_project", "--name", "Flow", "--user", "ada")
        self.key = re.search(r"cw_ing_\w+", said)[0]  # type: ignore[index]
        self.password = re.search(r"password: (\S+)", said)[1]  # type: ignore[index]
        self.manage("channel_add", "slack", channel, "--project", "flow", "--name", "#alerts")
        for role in self.roles:
            self.start_role(role)
        wait_for("the web process answers", lambda: self.status("/healthz") == 200, seconds=300)

    def _migrate(self) -> None:
        """Copies the database that the first process of the run migrated."""
        if self.database == "sqlite":
            copy_file(self.folder / "compilewatch.sqlite3")
        elif self.server is POSTGRESQL:
            copy_database(self.name, self.server)
        else:
            self.manage("migrate", "--verbosity=0")

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of the processes, the worker's last."""
        return ("everything",) if self.database == "sqlite" else ("web", "worker")

    def start_role(self, role: str) -> None:
        """Starts one process; its output goes to a file with its name."""
        with (self.folder / f"{role}.log").open("ab") as output:
            self.processes[role] = subprocess.Popen(
                self.command(role),
                cwd=REPOSITORY,
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def command(self, role: str) -> list[str]:
        """The command of a process; workers are named `worker-1` and so on."""
        celery = [str(Path(sys.executable).parent / "celery"), "-A", "dashboard.celery", "--quiet"]
        commands = {
            "everything": [sys.executable, "manage.py", "serve"],
            "web": [sys.executable, "manage.py", "web", "--workers", "2"],
            "worker": [
                *celery,
                "worker",
                "--hostname",
                f"{role}@%h",
                "--concurrency",
                "1",
                "--loglevel",
                "WARNING",
            ],
        }
        return commands[role.partition("-")[0]]

    def kill(self, role: str) -> None:
        """Sends SIGKILL to the process and its children."""
        process = self.processes.pop(role)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def status(self, path: str) -> int:
        """The status of a GET, 0 without a response."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return 0

    def page(self, path: str) -> str:
        """A page as the project's first user sees it."""
        address = f"http://127.0.0.1:{self.port}"
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        form = browser.open(f"{address}/accounts/login/", timeout=60).read().decode()
        token = re.search(r'csrfmiddlewaretoken" value="([^"]+)', form)[1]  # type: ignore[index]
        fields = urllib.parse.urlencode(
            {"csrfmiddlewaretoken": token, "login": "ada", "password": self.password}
        ).encode()
        browser.open(
            urllib.request.Request(f"{address}/accounts/login/", fields, {"Referer": address}),
            timeout=60,
        )
        return str(browser.open(address + path, timeout=60).read().decode())

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, read directly from the database."""
        if self.database == "sqlite":
            import sqlite3

            # Without `closing`, the connection stays open until garbage collection and would block
            # a restore.
            with (
                contextlib.closing(
                    sqlite3.connect(self.folder / "compilewatch.sqlite3", timeout=30)
                ) as connection,
                connection,
            ):
                return connection.execute(sql).fetchall()
        with psycopg.connect(dbname=self.name, **self.server) as connection:
            return connection.execute(sql).fetchall()

    def folded(self) -> bool:
        """True if no report waits to be folded."""
        return self.rows("SELECT count(*) FROM ingest_inbox")[0][0] == 0

    def logs(self) -> str:
        """The output of the processes."""
        return "\n".join(
            f"== {file.name}\n{file.read_text()[-4000:]}"
            for file in sorted(self.folder.glob("*.log"))
        )

    def close(self) -> None:
        """Ends every process and removes the database."""
        for role in list(self.processes):
            self.kill(role)
        if self.database == "postgresql":
            with psycopg.connect(dbname="postgres", autocommit=True, **self.server) as connection:
                connection.execute(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')


def answer_of(port: int, key: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """Status and JSON of one POST to the report endpoint; status 0 if the connection broke."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request(
            "POST",
            "/api/v1/reports",
            body,
            {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError):
        return 0, {}


def host_port(url: str) -> str:
    """The host:port entry that allows a local receiver."""
    return urlsplit(url).netloc
