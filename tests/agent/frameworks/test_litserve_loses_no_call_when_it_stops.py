"""LitServe ends its inference workers at Ctrl-C; the calls that they served before arrive, and the
first process is their parent.

LitServe does not handle SIGTERM: its first process dies of the signal, with or without the agent,
and the workers live on as orphans. Their calls arrive with their next window, or when another
signal ends the workers."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.agent.frameworks.services import calls_by_pid, endings, instances, serving
from tests.agent.server import Dashboard

JOB = """
import os, compilewatch
compilewatch.init(model="m", interval=200)
import litserve

class Api(litserve.LitAPI):
    def setup(self, device):
        self.call = compilewatch.watch(lambda request: os.getpid(), name="forward")
    def decode_request(self, request):
        return request
    def predict(self, request):
        return self.call(request)
    def encode_response(self, output):
        return output

if __name__ == "__main__":
    server = litserve.LitServer(Api(), accelerator="cpu", workers_per_device=2, track_requests=False)
    server.run(host="127.0.0.1", port=int(os.environ["PORT"]), log_level="error", generate_client_file=False)
"""


@pytest.mark.frameworks_only
def test_workers_before_and_after_a_restart(tmp_path: Path, dashboard: Dashboard) -> None:
    asked: Counter[str] = Counter()
    for _ in range(2):
        with serving(tmp_path, dashboard, JOB, "job.py") as server:
            asked += server.ask(30, b"{}")
            server.stop(signal.SIGINT)
    assert calls_by_pid(dashboard) == {int(pid): count for pid, count in asked.items()}
    found = instances(dashboard)
    workers = [one for pid, one in found.items() if str(pid) in asked]
    assert {one["label"] for one in workers} <= {"LitServe worker 0", "LitServe worker 1"}
    assert found[server.process.pid]["role"] == "parent"
    assert len({one["job"] for one in found.values()}) == 2
    assert endings(dashboard)


@pytest.mark.frameworks_only
def test_workers_orphaned_by_sigterm_report_their_calls_when_they_end(
    tmp_path: Path, dashboard: Dashboard
) -> None:
    with serving(tmp_path, dashboard, JOB, "job.py") as server:
        asked = {int(pid): count for pid, count in server.ask(20, b"{}").items()}
        assert server.stop() == -signal.SIGTERM
        for pid in asked:
            os.kill(pid, 0)
        os.killpg(server.process.pid, signal.SIGTERM)
        dashboard.wait(lambda board: calls_by_pid(board) == asked)
    assert {"signal": "SIGTERM"} in endings(dashboard)
