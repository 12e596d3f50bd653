"""A real torch process is frozen, run eager and restored while 8 threads call a function that was
compiled with `fullgraph=True`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from compilewatch.wire.command import Command

from tests.agent.programs import environment
from tests.agent.server import Dashboard
from tests.agent.signed import PUBLIC, both
from tests.machine import need

JOB = Path(__file__).parents[1] / "switched_job.py"
SECONDS = float(os.environ.get("COMPILEWATCH_TEST_SWITCH_SECONDS", "3"))
"""Duration of the test; 300 s were tried by hand."""


class Job:
    """The process and its command receipts."""

    def __init__(self, dashboard: Dashboard, backend: str) -> None:
        self.dashboard, self.counter = dashboard, 0
        allowed = environment(
            ENDPOINT=dashboard.endpoint,
            API_KEY="k",
            ALLOW_REMOTE="freeze,eager",
            COMMAND_PUBLIC_KEY=PUBLIC,
            SPOOL="off",
        )
        words = [sys.executable, str(JOB), backend]
        self.process = subprocess.Popen(
            words, env=allowed, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def receipts(self, state: str, counter: int | None = None) -> list[dict[str, Any]]:
        facts = [
            fact for report in self.dashboard.acked.values() for fact in report.get("facts", ())
        ]
        data = [fact["data"] for fact in facts if fact["kind"] == "command_receipt"]
        return [
            one for one in data if one["state"] == state and counter in (None, one.get("counter"))
        ]

    def order(self, verb: str, seconds: float = 60.0) -> int:
        """Puts this command into every answer from now on."""
        self.counter += 1
        now = time.time()
        made = Command(
            f"a1.{self.counter}",
            "8charsid",
            verb,
            self.counter,
            "ranker",
            "1",
            "production",
            now - 1,
            now + seconds,
            share=1.0,
        )
        self.dashboard.commands = [both(made)]
        return self.counter

    def until(self, state: str, counter: int) -> None:
        self.dashboard.wait(lambda _: bool(self.receipts(state, counter)))

    def fresh_size(self) -> dict[str, Any]:
        """The counts of a call with a new size."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self._line())
        return found

    def end(self) -> dict[str, Any]:
        out, _ = self.process.communicate(timeout=60)
        found: dict[str, Any] = json.loads(out.splitlines()[-1])
        return found


@pytest.fixture
def job(dashboard: Dashboard) -> Iterator[Callable[[str], Job]]:
    begun: list[Job] = []

    def begin(backend: str) -> Job:
        begun.append(Job(dashboard, backend))
        return begun[-1]

    yield begin
    for one in begun:
        one.process.kill()
        one.process.wait()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_no_call_raises_and_every_result_stays(
    backend: str, job: Callable[[str], Job], dashboard: Dashboard
) -> None:
    if backend == "inductor":
        need("a C++ compiler")
    one = job(backend)
    assert one.fresh_size() == {"compiled": 2, "same": True, "raised": []}
    one.until("applied", one.order("freeze"))
    assert one.fresh_size() == {"compiled": 0, "same": True, "raised": []}
    one.until("applied", one.order("eager"))
    assert one.fresh_size() == {"compiled": 0, "same": True, "raised": []}
    one.order("restore")
    dashboard.wait(lambda _: len(one.receipts("ended")) == 2)
    assert one.fresh_size() == {"compiled": 2, "same": True, "raised": []}
    stop = time.monotonic() + SECONDS
    while time.monotonic() < stop:
        for verb in ("freeze", "eager", "freeze", "restore"):
            one.until("accepted", one.order(verb))
    one.order("eager")
    # The agent samples during only a part of the time whether calls ran compiled.
    dashboard.wait(
        lambda _: any(region.eager_by.get("stance") for region in dashboard.regions("score"))
    )
    one.order("restore")
    found = one.end()
    assert (found["raised"], found["wrong"], found["stance"]) == ([], 0, "default")
    print(
        f"{backend}: {sum(found['calls']):,} calls of {len(found['calls'])} threads, "
        f"{one.counter} commands in {SECONDS:g} s"
    )
    assert min(found["calls"]) > 0 and one.receipts("refused") == []


def test_a_command_expires_while_the_dashboard_is_silent(
    job: Callable[[str], Job], dashboard: Dashboard
) -> None:
    one = job("eager")
    counter = one.order("freeze", seconds=2.0)
    one.until("applied", counter)
    dashboard.commands = []
    assert one.fresh_size()["compiled"] == 0
    one.until("ended", counter)
    assert one.receipts("ended", counter)[0]["why"] == "expired"
    assert one.fresh_size()["compiled"] == 2
    assert one.end()["raised"] == []
