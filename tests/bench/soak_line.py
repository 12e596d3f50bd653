"""The dashboard of a soak: web and worker each run twice. The first process lasts and shows
growth, the second is killed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.bench.soak_clock import VARIABLE
from tests.bench.soak_held import VARIABLE as HELD
from tests.faults.proxy import FaultProxy
from tests.faults.whole_line import WholeLine
from tests.flow.stack import REPOSITORY, free_port

LASTING, KILLED = ("web-1", "worker-1"), ("web-2", "worker-2")


class SoakLine(WholeLine):
    """Uses its own PostgreSQL and Redis."""

    def __init__(self, folder: Path, clock: str) -> None:
        super().__init__(database="postgresql", folder=folder, outbound="127.0.0.1:9")
        self.held = folder / "held"
        self.held.mkdir(exist_ok=True)
        self.environment |= {
            VARIABLE: clock,
            HELD: str(self.held),
            "DJANGO_SETTINGS_MODULE": "tests.bench.soak_settings",
        }
        self.ports = {"web-1": self.port, "web-2": free_port()}

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of the processes."""
        return LASTING + KILLED

    def command(self, role: str) -> list[str]:
        """The command of a Stack, with one process that serves requests."""
        words = ["--workers=1" if word == "--workers" else word for word in super().command(role)]
        return [word for word in words if word != "2"]

    def start_role(self, role: str) -> None:
        """Gives each web process its own port."""
        environment = self.environment | {"COMPILEWATCH_PORT": str(self.ports.get(role, self.port))}
        with (self.folder / f"{role}.log").open("ab") as log:
            self.processes[role] = subprocess.Popen(
                self.command(role),
                cwd=REPOSITORY,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def sessions_end(self) -> None:
        """PostgreSQL ends every connection to this database."""
        self.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
            "current_database() AND pid <> pg_backend_pid()"
        )

    def job(self, ledger: Path, version: str, endpoint: str) -> subprocess.Popen[bytes]:
        """Starts an instance. All instances share a folder, which keeps the remaining windows of
        killed instances."""
        settings = {
            "ENDPOINT": endpoint,
            "API_KEY": self.key,
            "SPOOL": str(self.folder / "spools"),
            "ALLOW_HTTP": "1",
        }
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("COMPILEWATCH_")
        }
        environment |= {f"COMPILEWATCH_{name}": value for name, value in settings.items()}
        environment |= {
            VARIABLE: self.environment[VARIABLE],
            "PYTHONPATH": self.environment["PYTHONPATH"],
        }
        command = [
            str(self.command("web-1")[0]),
            "-m",
            "tests.bench.soak_job",
            str(ledger),
            "--version",
            version,
        ]
        with ledger.with_suffix(".log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=REPOSITORY, env=environment, stdout=log, stderr=log
            )


class TwoDoors(FaultProxy):
    """Sends each request to a random web process, like a load balancer without health checks."""

    def __init__(self, ports: list[int], seed: int) -> None:
        super().__init__(ports[0], seed)
        self._ports = ports

    def ask(self, request: bytes) -> bytes:
        """The response of one web process."""
        self._target = self.chance.choice(self._ports)
        return super().ask(request)
