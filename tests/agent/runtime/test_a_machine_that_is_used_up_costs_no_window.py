"""The end of a process waits for its last window while the machine withholds the processor from the
agent's thread, and never for a thread that hangs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.agent.conftest import KEY
from tests.agent.identity.test_children_of_every_kind_report_once import SWEEP
from tests.agent.programs import run
from tests.agent.server import Dashboard

JOB = """
import json, os, threading, time
import compilewatch
from compilewatch import agent as client

BEFORE
compilewatch.init(model="m", interval=200)
call = compilewatch.watch(lambda: None, name="forward")
for _ in range(1000):
    call()
client.AGENT.worker.wait_until_loaded()
AFTER
began = time.monotonic()
compilewatch.shutdown()
print(json.dumps(time.monotonic() - began), flush=True)
os._exit(0)
"""
STARVED = """
agent, processor, end = client.AGENT.worker.thread.native_id, {min(os.sched_getaffinity(0))}, time.monotonic() + 2.5
for _ in range(8):
    if not os.fork():
        os.sched_setaffinity(0, processor)
        while time.monotonic() < end:
            pass
        os._exit(0)
os.sched_setaffinity(agent, processor)
os.sched_setscheduler(agent, os.SCHED_IDLE, os.sched_param(0))
"""
"""For 2.5 s the agent's thread gets the time that eight busy processes leave, almost nothing."""
HANGING = """
def spin():
    while True:
        pass

client.InstalledSources.poll = lambda sources: time.sleep(1000)
threading.Thread(target=spin, daemon=True).start()
"""
LONGEST, MARGIN = 1.0, 10


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="this system cannot starve a thread")
def test_a_starved_thread_is_waited_for(dashboard: Dashboard, tmp_path: Path) -> None:
    ended(dashboard, tmp_path, JOB.replace("BEFORE", "").replace("AFTER", STARVED))
    assert dashboard.calls("forward") == 1000


def test_a_hanging_driver_is_not_waited_for(dashboard: Dashboard, tmp_path: Path) -> None:
    seconds = ended(dashboard, tmp_path, JOB.replace("BEFORE", HANGING).replace("AFTER", ""))
    assert seconds < LONGEST * MARGIN
    assert dashboard.calls("forward") == 1000


def ended(dashboard: Dashboard, spool: Path, program: str) -> float:
    """The delay of the end of the program in seconds; windows that the program left on disk are
    sent."""
    done = run(program, ENDPOINT=dashboard.endpoint, API_KEY=KEY, SPOOL=str(spool))
    assert (done.returncode, done.stderr) == (0, "")
    if list(spool.rglob("*.spool")):
        swept = run(SWEEP, str(spool), ENDPOINT=dashboard.endpoint, API_KEY=KEY, SPOOL=str(spool))
        assert (swept.returncode, swept.stderr) == (0, "")
    return float(json.loads(done.stdout))
