"""An unanswered name look-up in the system resolver cannot be cancelled; neither the job nor its
children wait for it, and once the name server answers, every window arrives once."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.conftest import KEY
from tests.agent.export.http.name_server import NAME, NameServer, name_server
from tests.agent.identity.test_children_of_every_kind_report_once import SWEEP
from tests.agent.server import Dashboard, assert_sent_once

CALLS, LIMIT, MARGIN = 500, 1.0, 10
SILENCE = 100.0
"""Seconds that one unanswered look-up takes: longer than every other wait here."""
JOB = """
import json, os, signal, sys, time, compilewatch
from compilewatch import agent as client; from compilewatch.export import sender

sender.FIRST_WAIT, sender.LONGEST_WAIT = 0.05, 0.1
began = time.monotonic()
compilewatch.init(model="m", interval=0.1)
took = time.monotonic() - began
call = compilewatch.watch(lambda: None, name="forward")

def calls(count):
    for _ in range(count):
        call()

def stay():
    client.AGENT.worker.wait_until_loaded()
    instance = client.AGENT.worker.reporter
    closed = instance._seq
    while "stay" in sys.argv and (instance._seq <= closed + 1 or len(instance.outbox)):
        time.sleep(0.01)

print("ready", flush=True)
sys.stdin.readline()  # the look-up is in progress
calls(250)
child = os.fork()
if not child:
    signal.alarm(60)  # a child that hangs dies of it
    calls(500)
    stay()
    compilewatch.shutdown()
    os._exit(0)
calls(250)
print("forked", flush=True)
stay()
status = os.waitpid(child, 0)[1]
print(json.dumps([status, took, time.monotonic()]), flush=True)
if "shutdown" in sys.argv:
    compilewatch.shutdown()
"""


@pytest.fixture
def names(tmp_path: Path) -> Iterator[NameServer]:
    with name_server(tmp_path) as server:
        yield server


def forked(names: NameServer, how: str, dashboard: Dashboard, spool: Path) -> subprocess.Popen[str]:
    """A job that has called and forked during a look-up."""
    process = names.start(JOB, how, **settings(dashboard, spool))
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert names.asked.wait(60)
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "forked\n"
    return process


def settings(dashboard: Dashboard, spool: Path) -> dict[str, str]:
    endpoint = f"http://{NAME}:{dashboard.port}"
    return {"ENDPOINT": endpoint, "API_KEY": KEY, "SPOOL": str(spool), "ALLOW_HTTP": "1"}


@pytest.mark.parametrize("end", ["shutdown", "exit"])
def test_neither_job_nor_child_waits(
    end: str, names: NameServer, dashboard: Dashboard, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    process = forked(names, end, dashboard, spool)
    said, problems = process.communicate(timeout=SILENCE / 2)
    assert (process.returncode, problems) == (0, "")
    status, init, ended = json.loads(said)
    assert status == 0
    assert max(init, time.monotonic() - ended) < LIMIT * MARGIN
    assert dashboard.requests == []
    names.awake.set()
    sweep = names.start(SWEEP, str(spool), **settings(dashboard, spool))
    assert sweep.communicate(timeout=SILENCE) == ("", "")
    assert sweep.returncode == 0
    arrived(dashboard)


def test_pending_windows_arrive_once_the_name_server_answers(
    names: NameServer, dashboard: Dashboard, tmp_path: Path
) -> None:
    process = forked(names, "stay", dashboard, tmp_path / "spool")
    assert not dashboard.requests
    names.awake.set()
    said, problems = process.communicate(timeout=SILENCE)
    assert (process.returncode, problems) == (0, "")
    assert json.loads(said)[0] == 0
    arrived(dashboard)


def arrived(dashboard: Dashboard) -> None:
    """The calls of each process arrived once."""
    calls: dict[str, int] = {}
    for (instance, _, _), report in dashboard.acked.items():
        calls[instance] = calls.get(instance, 0) + sum(
            region["calls"] for region in report.get("regions", [])
        )
    assert sorted(count for count in calls.values() if count) == [CALLS, CALLS]
    assert_sent_once(dashboard)
