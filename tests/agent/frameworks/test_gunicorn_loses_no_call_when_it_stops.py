"""gunicorn's workers send their last window at HUP and at SIGTERM; the workers and the parent that
preloads are one job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.frameworks.services import calls_by_pid, endings, instances, serving
from tests.agent.server import Dashboard

JOB = """
import os, compilewatch
compilewatch.init(model="m", interval=200)

@compilewatch.watch(name="forward")
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
"""


@pytest.mark.parametrize("preload", [["--preload"], []], ids=["preload", "no preload"])
def test_workers_before_and_after_new_ones(
    tmp_path: Path, dashboard: Dashboard, preload: list[str]
) -> None:
    words = (
        "-m",
        "gunicorn",
        "job:app",
        "--workers",
        "2",
        "--bind",
        "127.0.0.1:PORT",
        "--log-level",
        "error",
        *preload,
    )
    with serving(tmp_path, dashboard, JOB, *words) as server:
        asked = server.ask(20)
        first = set(asked)
        server.restart_workers()
        dashboard.wait(lambda board: len(endings(board)) >= len(first))
        asked += server.ask(20)
        assert server.stop() == 0
    assert calls_by_pid(dashboard) == {int(pid): count for pid, count in asked.items()}
    found = instances(dashboard)
    workers = {pid: one for pid, one in found.items() if str(pid) in asked}
    assert len({one["job"] for one in found.values()}) == 1
    assert {one["role"] for one in workers.values()} == {"worker"}
    assert all(one["label"].startswith("gunicorn worker ") for one in workers.values())
    assert len({one["label"] for one in workers.values()}) == len(workers)
    if preload:
        [parent] = [one for one in found.values() if one["pid"] == server.process.pid]
        assert parent["role"] == "parent"
