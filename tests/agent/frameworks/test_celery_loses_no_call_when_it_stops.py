"""Processes of Celery's pool send their last window at a warm shutdown; the processes and the
worker that forks them are one job."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.frameworks.services import calls_by_pid, endings, instances, serving
from tests.agent.programs import environment
from tests.agent.server import Dashboard

JOB = """
import os, compilewatch
compilewatch.init(model="m", interval=200)
from celery import Celery

here = os.path.dirname(os.path.abspath(__file__))
app = Celery("job", broker="filesystem://", backend=f"file://{here}/results")
app.conf.broker_transport_options = {"data_folder_in": f"{here}/queue", "data_folder_out": f"{here}/queue", "polling_interval": 0.02}
app.conf.worker_send_task_events = False
app.conf.broker_connection_retry_on_startup = True

@app.task
@compilewatch.watch(name="forward")
def forward():
    return os.getpid()
"""
CLIENT = """
import collections, json, os
os.environ["COMPILEWATCH_ENDPOINT"] = ""
from job import forward
sent = [forward.delay() for _ in range(20)]
print(json.dumps(collections.Counter(one.get(timeout=60) for one in sent)))
"""
CELERY = (
    "-m",
    "celery",
    "-A",
    "job",
    "worker",
    "--concurrency",
    "2",
    "--max-tasks-per-child",
    "5",
    "--loglevel",
    "ERROR",
    "-n",
    "ranker@here",
    "--without-mingle",
    "--without-gossip",
)

RECYCLED = {"code": 155}
"""The end of a pool process that has done its maximum number of tasks."""


def ask(folder: Path) -> dict[int, int]:
    """The answers to a client that sends twenty tasks, counted by process."""
    done = subprocess.run(
        [sys.executable, "-c", CLIENT],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return {int(pid): count for pid, count in json.loads(done.stdout).items()}


@pytest.mark.frameworks_only
def test_processes_of_the_pool_before_and_after_they_are_replaced(
    tmp_path: Path, dashboard: Dashboard
) -> None:
    (tmp_path / "queue").mkdir()
    (tmp_path / "results").mkdir()
    with serving(tmp_path, dashboard, JOB, *CELERY) as server:
        asked = ask(tmp_path)
        assert server.stop() == 0
    assert calls_by_pid(dashboard) == asked
    found = instances(dashboard)
    workers = {pid: one for pid, one in found.items() if pid in asked}
    assert {one["role"] for one in workers.values()} == {"worker"}
    assert len({one["label"] for one in workers.values()}) == len(workers) > 2
    assert all(one["label"].startswith("ranker@here ForkPoolWorker-") for one in workers.values())
    assert {one["role"] for pid, one in found.items() if pid not in asked} == {"parent"}
    assert len({one["job"] for one in found.values()}) == 1
    assert endings(dashboard).count(RECYCLED) == len(workers)
