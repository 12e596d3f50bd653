"""Replicas of Ray Serve send their last window when a new version takes their place and when the
application is deleted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.conftest import KEY
from tests.agent.frameworks.services import calls_by_pid, instances
from tests.agent.programs import environment
from tests.agent.server import Dashboard

JOB = """
import collections, json, os, sys
import ray
from ray import serve

@serve.deployment(num_replicas=1, ray_actor_options={"num_cpus": 0.1}, graceful_shutdown_wait_loop_s=0.1)
class Model:
    def __init__(self, version):
        import compilewatch
        compilewatch.init(model="m", interval=200)
        self.call = compilewatch.watch(lambda: os.getpid(), name="forward")
    def __call__(self):
        return self.call()

ray.init(num_cpus=1, include_dashboard=False, logging_level="error", log_to_driver=False)
serve.start(proxy_location="Disabled")
asked = collections.Counter()
for version in ("1", "2"):
    handle = serve.run(Model.bind(version), route_prefix=None)
    asked.update(response.result() for response in [handle.remote() for _ in range(20)])
serve.shutdown()
ray.shutdown()
print("ASKED", json.dumps(asked))
"""


@pytest.mark.frameworks_only
def test_replicas_before_and_after_a_new_version(tmp_path: Path, dashboard: Dashboard) -> None:
    (tmp_path / "job.py").write_text(JOB)
    variables = {
        **environment(ENDPOINT=dashboard.endpoint, API_KEY=KEY),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    with subprocess.Popen(
        [sys.executable, "job.py"],
        cwd=tmp_path,
        env=variables,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as job:
        try:
            said = job.communicate(timeout=150)[0].decode()
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
    asked = json.loads(said.partition("ASKED ")[2])
    assert calls_by_pid(dashboard) == {int(pid): count for pid, count in asked.items()}
    found = [one for pid, one in instances(dashboard).items() if str(pid) in asked]
    assert {one["role"] for one in found} == {"worker"} and len({one["job"] for one in found}) == 1
    assert len({one["label"] for one in found}) == len(found) == 2 and all(
        "Model" in one["label"] for one in found
    )
