"""uvicorn raises SIGTERM again after its own graceful end; the last requests arrive, from one
process and from several."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.agent.frameworks.services import calls_by_pid, endings, instances, serving
from tests.agent.server import Dashboard

JOB = """
import os, compilewatch
compilewatch.init(model="m", interval=200)
from fastapi import FastAPI
app = FastAPI()

@app.get("/")
@compilewatch.watch(name="forward")
async def root() -> int:
    return os.getpid()
"""
UVICORN = ("-m", "uvicorn", "job:app", "--log-level", "error", "--port", "PORT")


def test_one_process(tmp_path: Path, dashboard: Dashboard) -> None:
    with serving(tmp_path, dashboard, JOB, *UVICORN) as server:
        asked = server.ask(40)
        assert server.stop() == -signal.SIGTERM
    assert calls_by_pid(dashboard) == {int(pid): count for pid, count in asked.items()}
    assert endings(dashboard) == [{"signal": "SIGTERM"}]


def test_workers_of_one_server_before_and_after_new_ones(
    tmp_path: Path, dashboard: Dashboard
) -> None:
    with serving(tmp_path, dashboard, JOB, *UVICORN, "--workers", "2") as server:
        asked = server.ask(20)
        server.restart_workers()
        dashboard.wait(lambda board: len(endings(board)) >= 2)
        asked += server.ask(20)
        assert server.stop() == 0
    assert calls_by_pid(dashboard) == {int(pid): count for pid, count in asked.items()}
    found = instances(dashboard)
    assert set(endings(dashboard)[0].items()) == {("signal", "SIGTERM")} and len(
        endings(dashboard)
    ) == len(found)
    assert {one.get("role", "") for one in found.values()} <= {"worker", ""} and len(
        {one["job"] for one in found.values()}
    ) == 1
    assert {one["label"] for one in found.values()} >= {"uvicorn worker 1", "uvicorn worker 2"}
