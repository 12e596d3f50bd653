"""The agent compared with sentry-sdk and OpenTelemetry in one run, each with its default settings:
delivered calls and shutdown time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from compilewatch import __version__

from tests.bench.peer_job import CLIENTS
from tests.bench.peer_server import PeerServer

Scenario = Callable[["Run"], str]
LIMIT = 30.0
"""Seconds after which a process that does not end is reported as hung and killed."""


class Run:
    """One client in one scenario, with its server, its job and its ledger."""

    def __init__(self, client: str, folder: Path) -> None:
        self.client = client
        self.server = PeerServer()
        self.ledger = folder / f"{client}-{threading.get_ident()}"
        self.ledger.write_bytes(bytes(8))
        self._cache = self.ledger.with_suffix(".cache")

    def start(self, seconds: float, fork_at: float = 0.0) -> subprocess.Popen[bytes]:
        """Starts the job."""
        words = [
            sys.executable,
            "-m",
            "tests.bench.peer_job",
            self.client,
            self.server.url,
            str(self.ledger),
            str(seconds),
            str(fork_at),
        ]
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("COMPILEWATCH_")
        }
        environment["XDG_CACHE_HOME"] = str(self._cache)
        return subprocess.Popen(
            words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def arrived(self, more: int = 0) -> str:
        """Number of delivered calls."""
        made = int.from_bytes(self.ledger.read_bytes(), "little") + more
        return f"{self.server.delivered} of {made}"

    def stamp(self, name: str) -> float | None:
        """The time that the job wrote to a file."""
        path = Path(f"{self.ledger}.{name}")
        return float(path.read_text()) if path.exists() else None


def outage(seconds: float) -> Scenario:
    """The server does not listen for `seconds` in the middle of the job."""

    def scenario(run: Run) -> str:
        run.server.up()
        job = run.start(seconds + 30.0)
        time.sleep(5.0)
        run.server.away()
        time.sleep(seconds)
        run.server.up()
        job.wait(seconds + 30.0 + LIMIT)
        return run.arrived()

    return scenario


def html(run: Run) -> str:
    """A proxy responds with 200 and an HTML page for 15 seconds."""
    run.server.up()
    job = run.start(45.0)
    time.sleep(5.0)
    run.server.mode = "html"
    time.sleep(15.0)
    run.server.mode = "up"
    job.wait(45.0 + LIMIT)
    return run.arrived()


def terminated(run: Run) -> str:
    """SIGTERM after 15 seconds; the next job starts half a second later and makes a few calls."""
    run.server.up()
    job = run.start(60.0)
    time.sleep(15.0)
    began = time.monotonic()
    job.send_signal(signal.SIGTERM)
    job.wait(LIMIT)
    took = time.monotonic() - began
    made = int.from_bytes(run.ledger.read_bytes(), "little")
    run.start(25.0).wait(25.0 + LIMIT)
    return f"{run.arrived(made)}, dead in {took:.2f} s"


def forked(run: Run) -> str:
    """Responses take three seconds for some time. The process forks meanwhile; the child makes 20
    calls, sends them and ends."""
    run.server.up()
    began = time.monotonic()
    job = run.start(30.0, 13.0)
    time.sleep(11.0)
    run.server.mode = "slow"
    time.sleep(5.0)
    run.server.mode = "up"
    job.wait(30.0 + LIMIT)
    while run.stamp("child") is None and time.monotonic() - began < 30.0 + LIMIT:
        time.sleep(0.1)
    return run.arrived(20) + (
        ", child ended" if run.stamp("child") else f", child hung for {LIMIT:.0f} s"
    )


def dead_at_exit(run: Run) -> str:
    """The server does not listen when the program ends. The time after the exit functions belongs
    to Python's own shutdown."""
    job = run.start(5.0)
    try:
        job.wait(5.0 + LIMIT)
    except subprocess.TimeoutExpired:
        job.kill()
        return f"still running after {LIMIT:.0f} s"
    now, ended, flushed = time.monotonic(), run.stamp("ended"), run.stamp("flushed")
    return (
        f"{now - ended:.2f} s, to the end of the exit functions {flushed - ended:.2f} s"
        if ended and flushed
        else "died"
    )


SCENARIOS: dict[str, Scenario] = {
    "server away for 20 s": outage(20.0),
    "server away for 45 s": outage(45.0),
    "HTML 200 from a proxy for 15 s": html,
    "SIGTERM, then the next job": terminated,
    "fork while sending": forked,
    "exit while the server is away: delay": dead_at_exit,
}


def main() -> int:
    """Prints the table; all scenarios run at once and take about a minute and a half."""
    found: dict[tuple[str, str], str] = {}

    def measure(name: str, client: str, folder: Path) -> None:
        run = Run(client, folder)
        try:
            found[name, client] = SCENARIOS[name](run)
        except Exception as error:  # noqa: BLE001 - the other results are printed in any case
            found[name, client] = f"no result: {type(error).__name__}"
        run.server.away()

    with tempfile.TemporaryDirectory() as folder:
        cases = [(name, client, Path(folder)) for name in SCENARIOS for client in CLIENTS]
        threads = [threading.Thread(target=measure, args=case) for case in cases]
        for thread in threads:
            thread.start()
            time.sleep(0.3)
        for thread in threads:
            thread.join()
    versions = (
        f"compilewatch {__version__}",
        f"sentry-sdk {version('sentry-sdk')}",
        f"OpenTelemetry {version('opentelemetry-sdk')}",
    )
    print("| delivered calls | " + " | ".join(versions) + " |\n|---|---|---|---|")
    for name in SCENARIOS:
        print(f"| {name} | " + " | ".join(found[name, client] for client in CLIENTS) + " |")
    wrong = [
        client
        for (name, client), text in found.items()
        if client == "compilewatch" and "hung" in text
    ]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
