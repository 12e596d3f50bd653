"""Real servers with the agent in their workers, a client that counts its own requests, and the last
identity that each worker reported."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from tests.agent.conftest import KEY
from tests.agent.programs import environment
from tests.agent.server import Dashboard

PATIENCE_SECONDS = 100.0


class Listener(Protocol):
    """A receiver of agent reports."""

    @property
    def endpoint(self) -> str:
        """The address of the receiver."""


class Service:
    """The first process of a server, on its own port."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = process
        self.port = port

    def ask(self, times: int, body: bytes | None = None) -> Counter[str]:
        """Sends `times` requests, each on its own connection, once the port listens; returns how
        often each worker answered."""
        answers: Counter[str] = Counter()
        for _ in range(times):
            answers[self._ask(body)] += 1
        return answers

    def _ask(self, body: bytes | None) -> str:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            path = "predict" if body else ""
            request = urllib.request.Request(
                f"http://127.0.0.1:{self.port}/{path}", body, {"Content-Type": "application/json"}
            )
            try:
                return str(urllib.request.urlopen(request, timeout=60).read().decode())
            except OSError:
                assert time.monotonic() < until and self.process.poll() is None
                time.sleep(0.05)

    def restart_workers(self) -> None:
        """Asks the server to replace its workers one after the other."""
        self.process.send_signal(signal.SIGHUP)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Stops the server with a signal, as an orchestrator or a terminal does."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)


def free_port() -> int:
    """A port that nothing listens on at the moment."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _heed_interrupts() -> None:
    """A shell makes its background processes ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def serving(
    folder: Path, dashboard: Listener, program: str, *words: str, **settings: str
) -> Iterator[Service]:
    """Runs `python WORDS` in a folder with the program job.py; PORT among the words becomes the
    port of the server."""
    (folder / "job.py").write_text(program)
    port = free_port()
    full = [sys.executable, *(word.replace("PORT", str(port)) for word in words)]
    variables = {
        **environment(**{"ENDPOINT": dashboard.endpoint, "API_KEY": KEY, **settings}),
        "PORT": str(port),
    }
    process = subprocess.Popen(
        full,
        cwd=folder,
        env=variables,
        stdout=sys.stderr,
        start_new_session=True,
        preexec_fn=_heed_interrupts,
    )
    try:
        yield Service(process, port)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def instances(dashboard: Dashboard) -> dict[int, dict[str, Any]]:
    """The last identity that each process reported, by process id."""
    return {request["instance"]["pid"]: request["instance"] for request in dashboard.requests}


def endings(dashboard: Dashboard) -> list[dict[str, Any]]:
    """The end of each process, as the process reported it."""
    return [
        dict(fact.data)
        for report in dashboard.reports()
        for fact in report.facts
        if fact.kind == "ended"
    ]


def calls_by_pid(dashboard: Dashboard, name: str = "forward") -> dict[int, int]:
    """Calls of a region, by process."""
    pids = {request["instance"]["id"]: request["instance"]["pid"] for request in dashboard.requests}
    found: Counter[int] = Counter()
    for (instance, _, _), report in dashboard.acked.items():
        found[pids[instance]] += sum(
            region["calls"] for region in report.get("regions", []) if region["name"] == name
        )
    return {pid: calls for pid, calls in found.items() if calls}
