"""Jobs of one case: processes that report one version, share a folder for their spools, and keep
one ledger each."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agent.programs import environment
from tests.faults.ledger import Recorded, ledger_read
from tests.flow.stack import REPOSITORY

SWEEP_SECONDS = 300.0
LONGEST = 4.0


@dataclass
class Doomed:
    """A job that is killed some seconds after it started to work, regardless of its start time."""

    process: subprocess.Popen[str]
    ledger: Path
    seconds: float
    at: float = math.inf

    def killed(self) -> bool:
        """Kills the job if its time is over; a job that ended alone fails the test."""
        assert self.process.poll() is None, "a job ended before it was killed"
        if self.at == math.inf and self.ledger.exists() and self.ledger.stat().st_size:
            self.at = time.monotonic() + self.seconds
        if time.monotonic() < self.at:
            return False
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)
        return True


class Jobs:
    """`version` separates the cases of a run in the dashboard."""

    def __init__(self, folder: Path, endpoint: str, key: str, version: str) -> None:
        self.version, self.spools = version, folder / "spools"
        self._folder, self._endpoint, self._key = folder, endpoint, key
        self.running: list[subprocess.Popen[str]] = []
        self._ledgers: dict[int, Path] = {}

    def start(
        self,
        *options: str,
        endpoint: str = "",
        spool: str = "",
        version: str = "",
        through: Sequence[str] = (),
        earlier: Path | None = None,
    ) -> subprocess.Popen[str]:
        """Starts a job that works until it is stopped, optionally through a launcher that starts
        several ranks. The agent is the agent of this release, or of an earlier release whose code
        is in the folder `earlier`."""
        ledger = (
            self._folder
            / f"{len(self.running)}{'-{rank}' if through else ''}.{version or self.version}.ledger"
        )
        program = "tests.faults.earlier_job" if earlier else "tests.faults.job"
        words = [
            sys.executable,
            *through,
            "-m",
            program,
            str(ledger),
            "--version",
            version or self.version,
            *options,
        ]
        settings = {
            "ENDPOINT": endpoint or self._endpoint,
            "API_KEY": self._key,
            "SPOOL": spool or str(self.spools),
            "ALLOW_HTTP": "1",
        }
        output = ledger.with_suffix(".log").open("w")
        paths = f"{REPOSITORY}:{(earlier or REPOSITORY) / 'agents'}"
        process = subprocess.Popen(
            words,
            cwd=REPOSITORY,
            env={**environment(**settings), "PYTHONPATH": paths},
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output.close()
        self.running.append(process)
        self._ledgers[process.pid] = ledger
        return process

    def start_plain(self, seed: str, windows: int) -> subprocess.Popen[str]:
        """Starts a sender without the agent, under its own version; it ends when all its windows
        are acknowledged."""
        notes = self._folder / f"{len(self.running)}.notes"
        words = [str(notes), self._endpoint, self._key, f"{self.version}-plain", seed, str(windows)]
        with notes.with_suffix(".log").open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.plain_sender", *words],
                cwd=REPOSITORY, stdout=output, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
        self.running.append(process)
        self._ledgers[process.pid] = notes
        return process

    def output(self, process: subprocess.Popen[str]) -> str:
        """The output of a job on both streams."""
        return self._ledger(process).with_suffix(".log").read_text()

    def _ledger(self, process: subprocess.Popen[str]) -> Path:
        return self._ledgers[process.pid]

    def shutdown_seconds(self, process: subprocess.Popen[str]) -> float:
        """Delay of the end of a job."""
        return float(self._figures(process)["shutdown"])

    def call_seconds(self, process: subprocess.Popen[str]) -> list[float]:
        """Duration of each call, shortest first; for a job with `--timed`."""
        return list(self._figures(process)["took"])

    def _figures(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """The last line of a job's output. Before it, the agent may report once that nothing
        arrives; other output is an error."""
        *before, last = self.output(process).splitlines()
        assert len(before) <= 1, before
        assert all(
            text.startswith("compilewatch: the reports of this process do not reach the dashboard")
            for text in before
        ), before
        return dict(json.loads(last))

    def kill_at_random(
        self, count: int, at_once: int, chance: random.Random, *options: str, spool: str = ""
    ) -> None:
        """Runs this number of jobs and kills each at a uniformly random moment of its work."""
        waiting = count
        alive: list[Doomed] = []
        while waiting or alive:
            while waiting and len(alive) < at_once:
                process = self.start(*options, spool=spool)
                alive.append(Doomed(process, self._ledger(process), chance.uniform(0.0, LONGEST)))
                waiting -= 1
            alive = [one for one in alive if not one.killed()]
            time.sleep(0.01)

    def sweep(self, endpoint: str = "") -> None:
        """Runs one more process of the project until all earlier spool files are gone. The process
        may leave its own last window: on an overloaded machine, the second at its end is too short
        to send the window."""
        left = set(self.spools.rglob("*.spool"))
        process = self.start(
            "--seconds",
            str(SWEEP_SECONDS),
            "--impatient",
            "--sweep",
            str(self.spools),
            endpoint=endpoint,
            version=f"{self.version}-sweep",
        )
        assert process.wait(SWEEP_SECONDS + 60) == 0, self.output(process)
        assert not left & set(self.spools.rglob("*.spool")), self.output(process)

    def recorded(self) -> list[Recorded]:
        """The ledgers of the case's own jobs and of the sweeps."""
        return [ledger_read(path) for path in sorted(self._folder.glob("*.ledger"))]

    def ours(self) -> list[Recorded]:
        """The ledgers of the case's own jobs."""
        return [ledger_read(path) for path in sorted(self._folder.glob(f"*.{self.version}.ledger"))]

    def end(self) -> None:
        """Stops the running jobs."""
        for process in self.running:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait(60)
