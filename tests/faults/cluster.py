"""A PostgreSQL server of a test's own, which it may stop, kill, halt, limit, copy and restore."""

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
    """Its files are in a folder of its owner, who may not enter those of a test; trust for everyone
    on 127.0.0.1."""

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
        """How psycopg reaches it."""
        return {"user": "postgres", "host": "127.0.0.1", "port": str(self.port)}

    def login(self, name: str, password: str) -> None:
        """A person of the database with a database of the same name, who comes in by password
        alone."""
        with self.connect() as session:
            session.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
            session.execute(f"CREATE DATABASE {name} OWNER {name}")
            lines = (
                "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
            )
            (self.folder / "data/pg_hba.conf").write_text(lines)
            session.execute("SELECT pg_reload_conf()")

    def run(self, program: str, *arguments: str) -> None:
        """One of PostgreSQL's programs, as its owner."""
        prefix = ["runuser", "-u", OWNER, "--"] if os.getuid() == 0 else []
        with (self.folder / "commands.log").open("ab") as log:
            command = [*prefix, str(Path(postgresql_programs() or "") / program), *arguments]
            subprocess.run(
                command, cwd=self.folder, stdout=log, stderr=log, check=True, timeout=300
            )

    def start(self) -> None:
        """Listens; returns when it answers."""
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
        """Becomes an asynchronous standby of another server: a copy of it that is sent whatever it
        commits."""
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
        """What the primary sends from now on lies in the network; its commits wait for nobody."""
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
            wait_for("it is sent what is committed", receiver, seconds=60, every=0.05),
            signal.SIGSTOP,
        )

    def promote(self) -> None:
        """Takes over with what it had received: the rest was in flight when its own machine was
        started anew."""
        self.kill()
        self.start()
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-w", "promote")

    def stop(self, how: str = "immediate") -> None:
        """Stops it, as a crash would unless told otherwise."""
        self.run("pg_ctl", "-D", f"{self.folder}/data", "-m", how, "-w", "stop")

    def kill(self) -> None:
        """SIGKILL to every process at once. What the dead leave to be found goes too, as with a
        container that is started anew."""
        # Stopped first, so that it starts no other when one of them dies.
        self._signal(signal.SIGSTOP)
        parent = self._signal(signal.SIGKILL)
        wait_for("it is dead", lambda: gone(parent), seconds=60, every=0.01)
        for left in (self.folder / "data/postmaster.pid", *self.folder.glob(".s.PGSQL.*")):
            left.unlink(missing_ok=True)

    def halt(self) -> None:
        """Every process of it stands still and answers nobody; its sockets stay open."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """After `halt`."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> int:
        parent = int((self.folder / "data/postmaster.pid").read_text().split()[0])
        for process in (parent, *children(parent)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        return parent

    def connect(self, name: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """A session of the test's own."""
        return psycopg.connect(dbname=name, autocommit=True, **self.address)

    def close(self) -> None:
        """Ends it if it runs, and removes its files."""
        if (self.folder / "data/postmaster.pid").exists():
            self.go_on()
            self.stop()
        shutil.rmtree(self.folder)


def children(process: int) -> list[int]:
    """The processes that it started and that still run."""
    try:
        return [
            int(word)
            for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()
        ]
    except OSError:
        return []


def gone(process: int) -> bool:
    """Whether it has ended, be it that nobody has asked how yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
