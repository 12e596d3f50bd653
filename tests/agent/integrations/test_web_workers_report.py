"""Under gunicorn each worker is an instance, whether the agent was started before or after the
fork."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.agent.conftest import KEY
from tests.agent.families import CALLS
from tests.agent.programs import environment
from tests.agent.server import Dashboard

APP = f"""
import os, compilewatch
compilewatch.init(model="m", interval=200)
call = compilewatch.watch(lambda: None, name="forward")

def app(environ, start_response):
    for _ in range({CALLS}):
        call()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
"""
REQUESTS = 12


@pytest.mark.parametrize(
    "options",
    [["--preload"], [], ["--preload", "--threads", "2"]],
    ids=["preload", "no preload", "threads"],
)
def test_each_worker_is_an_instance(
    tmp_path: Path, dashboard: Dashboard, options: list[str]
) -> None:
    (tmp_path / "job.py").write_text(APP)
    words = [
        sys.executable,
        "-m",
        "gunicorn",
        "job:app",
        "--workers",
        "2",
        "--bind",
        "127.0.0.1:0",
        *options,
    ]
    settings = environment(ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    with subprocess.Popen(
        words, cwd=tmp_path, env=settings, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        address = next(
            found.group()
            for line in server.stderr
            if (found := re.search(r"http://127\.0\.0\.1:\d+", line))
        )
        served = [int(urllib.request.urlopen(address, timeout=60).read()) for _ in range(REQUESTS)]
        server.send_signal(signal.SIGTERM)
        said = server.stderr.read()
        assert server.wait(60) == 0
    assert "compilewatch" not in said and "Traceback" not in said
    assert dashboard.calls("forward") == REQUESTS * CALLS
    by_pid: dict[int, int] = {}
    for request in dashboard.requests:
        calls = sum(
            region["calls"] for report in request["reports"] for region in report.get("regions", [])
        )
        by_pid[request["instance"]["pid"]] = by_pid.get(request["instance"]["pid"], 0) + calls
    assert {pid: calls for pid, calls in by_pid.items() if calls} == {
        pid: served.count(pid) * CALLS for pid in set(served)
    }
    assert len({request["instance"]["id"] for request in dashboard.requests}) == len(by_pid)
    assert os.getpid() not in by_pid
