"""A PostgreSQL server for one test, which may stop, kill, halt, limit, copy and restore it."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psycopg

from tests.flow.stack import free_port, wait_for
from tests.machine import need, postgresql_programs

OWNER = "postgres"


class Cluster:
    """The files are in a folder of the server's owner, who may not enter the folders of a test;
    every connection from 127.0.0.1 is trusted."""

    def __init__(
        self, *, settings: Sequence[str] = (), empty: bool = False, folder: Path | None = None
    ) -> None:
        need("PostgreSQL's programs")
        self.folder = folder or Path(tempfile.mkdtemp(prefix="compilewatch-cluster-"))
        self.port, self._settings = free_port(), settings
        if os.getuid() == 0:
            os.chown(self.folder, pwd.getpwnam(OWNER).pw_uid, -1)
        if not empty:
            words = "-A trust -U postgres -E UTF8 --locale C.UTF-8 --no-sync --no-instructions"
            self.run("initdb", "-D", f"{self.folder}/data", *words.split())

    @property
    def address(self) -> dict[str, str]:
        """Connection parameters for psycopg."""
        return {"user": "postgres", "host": "127.0.0.1", "port": str(self.port)}

    def login(self, name: str, password: str) -> None:
        """Creates a role with a database of the same name; the role must sign in with a
        password."""
        with self.connect() as session:
            session.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
            session.execute(f"CREATE DATABASE {name} OWNER {name}")
            lines = (
                "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
            )
            (self.folder / "data/pg_hba.conf").write_text(lines)
            session.execute("SELECT pg_reload_conf()")

    def run(self, program: str, *arguments: str) -> None:
        """Runs a PostgreSQL program as the owner of the server."""
        prefix = ["runuser", "-u", OWNER, "--"] if os.getuid() == 0 else []
        with (self.folder / "commands.log").open("ab") as log:
            command = [*prefix, str(Path(postgresql_programs() or "") / program), *arguments]
            subprocess.run(
                command, cwd=self.folder, stdout=log, stderr=log, check=True, timeout=300
            )

    def start(self) -> None:
        """Starts the server; returns when it responds."""
        options = [
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={self.folder}",
            *self._settings,
        ]
        words = " ".join(f"-c {option}" for option in options)
        self.run(
            "pg_ctl",
            "-D",
            f"{self.folder}/data",
            "-l",
            f"{self.folder}/server.log",
            "-w",
            "-t",
            "290",
            "-o",
            words,
            "start",
        )

    def follow(self, primary: Cluster) -> None:
        """Becomes an asynchronous standby of another server: a copy that receives every commit."""
        source = "user=postgres host=127.0.0.1 port={port}".format(**primary.address)
        self.run(
            "pg_basebackup",
            "-D",
            f"{self.folder}/data",
            "-d",
            source,
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "--no-sync",
        )
        self.start()

    def receive_no_more(self) -> None:
        """Stops receiving: data from the primary stays in the network, and commits of the primary
        do not wait for it."""
        parent = int((self.folder / "data/postmaster.pid").read_text().split()[0])

        def receiver() -> int:
            return next(
                (
                    child
                    for child in children(parent)
                    if b"walreceiver" in Path(f"/proc/{child}/cmdline").read_bytes()
                ),
                0,
            )

        os.kill(
            wait_for("the standby receives commits", receiver, seconds=60, every=0.05),
            signal.SIGSTOP,
        )

    def promote(self) -> None:
        """Takes over with the received data; the rest was in flight when the primary's machine
        restarted."""
        self.kill()
        self.start()
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-w", "promote")

    def stop(self, how: str = "immediate") -> None:
        """Stops the server, by default as in a crash."""
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-m", how, "-w", "stop")

    def kill(self) -> None:
        """SIGKILL to every process at once. Also removes the files of dead processes, as the
        restart of a container does."""
        # Stopped first, so that it starts no process when one of them dies.
        self._signal(signal.SIGSTOP)
        parent = self._signal(signal.SIGKILL)
        wait_for("the server is dead", lambda: gone(parent), seconds=60, every=0.01)
        for left in (self.folder / "data/postmaster.pid", *self.folder.glob(".s.PGSQL.*")):
            left.unlink(missing_ok=True)

    def halt(self) -> None:
        """Halts every process of the server, without responses; its sockets stay open."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Continues after `halt`."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> int:
        parent = int((self.folder / "data/postmaster.pid").read_text().split()[0])
        for process in (parent, *children(parent)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        return parent

    def connect(self, name: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """A session for the test."""
        return psycopg.connect(dbname=name, autocommit=True, **self.address)

    def close(self) -> None:
        """Stops the server if it runs, and removes its files."""
        if (self.folder / "data/postmaster.pid").exists():
            self.go_on()
            self.stop()
        shutil.rmtree(self.folder)


def children(process: int) -> list[int]:
    """Running child processes of a process."""
    try:
        return [
            int(word)
            for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()
        ]
    except OSError:
        return []


def gone(process: int) -> bool:
    """True if the process has ended, even if its parent has not collected its status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
