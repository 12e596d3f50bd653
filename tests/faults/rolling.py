"""A dashboard that is upgraded from an earlier release to this one process by process, with two web
processes that agents report to."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.flow.stack import REPOSITORY, Stack, free_port

RELEASE = REPOSITORY / "tests/data/releases/first-code.tar.xz"
PATIENCE = 3.0
"""Seconds after which a process that received a stop signal is killed. The worker of the earlier
release folds until the inbox is empty."""


def release_unpack(folder: Path) -> Path:
    """The code of the earlier release, in a folder that its processes can run from."""
    with tarfile.open(RELEASE) as archive:
        # Debian's Python 3.11.2 has no extraction filters; the archive comes from this repository.
        archive.extractall(
            folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {})
        )
    return folder


class Rolling(Stack):
    """Runs on PostgreSQL. Every process uses the code of the earlier release until `replace`
    changes it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(database="postgresql", folder=folder, outbound="127.0.0.1:9")
        self.earlier = release_unpack(folder / "earlier")
        self.code: dict[str, Path] = {}
        self.ports = {"web-1": self.port, "web-2": free_port()}

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of the processes; only the earlier release needs beat."""
        return ("web-1", "web-2", "worker", "beat")

    @property
    def beat_command(self) -> list[str]:
        """The command of the earlier release's beat."""
        celery = str(Path(sys.executable).parent / "celery")
        words = [celery, "-A", "dashboard.celery", "--quiet", "beat", "--loglevel", "WARNING"]
        return [*words, "--schedule", str(self.folder / "beat"), "--pidfile", ""]

    def manage(self, *arguments: str) -> str:
        """Runs a management command of the earlier release."""
        return self.manage_of(self.earlier, *arguments)

    def manage_of(self, code: Path, *arguments: str) -> str:
        """Runs a management command of a release."""
        words = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            words,
            cwd=code,
            env=self._paths(code),
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout

    def start_role(self, role: str) -> None:
        """Starts one process with its current code."""
        code = self.code.setdefault(role, self.earlier)
        environment = self._paths(code) | {
            "COMPILEWATCH_PORT": str(self.ports.get(role, self.port))
        }
        words = self.beat_command if role == "beat" else self.command(role)
        if code == self.earlier and role in self.ports:
            server = [
                str(Path(sys.executable).parent / "gunicorn"),
                "-k",
                "gthread",
                "-w",
                "2",
                "--threads",
                "8",
            ]
            words = [*server, "-b", f"127.0.0.1:{self.ports[role]}", "dashboard.wsgi"]
        with (self.folder / f"{role}.log").open("ab") as output:
            self.processes[role] = subprocess.Popen(
                words,
                cwd=code,
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def answers(self, role: str) -> bool:
        """True if the web process responds."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.ports[role], timeout=10)
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except OSError:
            return False

    def stop(self, role: str, how: signal.Signals) -> None:
        """Ends a process as a supervisor does: SIGKILL after a time limit."""
        process = self.processes[role]
        process.send_signal(how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        del self.processes[role]

    def replace(self, role: str, how: signal.Signals) -> None:
        """Ends the process and starts it with this release."""
        self.stop(role, how)
        self.code[role] = REPOSITORY
        self.start_role(role)

    def _paths(self, code: Path) -> dict[str, str]:
        return {**self.environment, "PYTHONPATH": f"{code}:{code / 'agents'}"}
