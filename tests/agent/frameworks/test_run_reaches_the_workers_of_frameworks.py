"""`compilewatch run` before the launcher of a framework: each worker of torchrun and each replica
of Ray Serve reports."""

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

TRAIN = """
import os, torch

@torch.compile(backend="eager")
def forward(x):
    return x + 1

for _ in range(4):
    forward(torch.ones(2))
print("ASKED", os.getpid(), flush=True)
"""
SERVE = """
import collections, json, os
import ray
from ray import serve

@serve.deployment(num_replicas=2, ray_actor_options={"num_cpus": 0.1}, graceful_shutdown_wait_loop_s=0.1)
class Model:
    def __init__(self):
        import torch
        self.call = torch.compile(forward, backend="eager")
    def __call__(self):
        import torch
        self.call(torch.ones(2))
        return os.getpid()

def forward(x):
    return x + 1

ray.init(num_cpus=1, include_dashboard=False, logging_level="error", log_to_driver=False)
serve.start(proxy_location="Disabled")
handle = serve.run(Model.bind(), route_prefix=None)
asked = collections.Counter(response.result() for response in [handle.remote() for _ in range(20)])
serve.shutdown()
ray.shutdown()
print("ASKED", json.dumps(asked))
"""


def output(folder: Path, dashboard: Dashboard, program: str, *words: str) -> str:
    """The standard output of the command."""
    (folder / "job.py").write_text(program)
    variables = {
        **environment(ENDPOINT=dashboard.endpoint, API_KEY=KEY, MODEL="m", INTERVAL="200"),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    full = [sys.executable, "-m", "compilewatch", "run", "--", *words]
    with subprocess.Popen(
        full, cwd=folder, env=variables, stdout=subprocess.PIPE, start_new_session=True
    ) as job:
        try:
            text = job.communicate(timeout=200)[0].decode()
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
    assert job.returncode == 0
    return text


@pytest.mark.parametrize(
    "launcher",
    [
        "torchrun",
        pytest.param("python -m torch.distributed.run", marks=pytest.mark.frameworks_only),
        pytest.param(
            "accelerate launch --num_cpu_threads_per_process 1", marks=pytest.mark.frameworks_only
        ),
    ],
)
def test_each_worker_of_a_launcher_reports_and_the_launcher_does_not(
    tmp_path: Path, dashboard: Dashboard, launcher: str
) -> None:
    alone = [] if "accelerate" in launcher else ["--standalone", "--nproc-per-node", "2"]
    said = output(tmp_path, dashboard, TRAIN, *launcher.split(), *alone, "job.py")
    workers = {int(word) for word in said.split() if word.isdigit()}
    assert len(workers) == (2 if alone else 1)
    assert (
        calls_by_pid(dashboard) == dict.fromkeys(workers, 4)
        and set(instances(dashboard)) == workers
    )
    assert not alone or sorted(
        one["rank"] for one in instances(dashboard).values() if "rank" in one
    ) in ([1], [0, 1])


@pytest.mark.frameworks_only
def test_each_replica_of_ray_serve_reports(tmp_path: Path, dashboard: Dashboard) -> None:
    said = output(tmp_path, dashboard, SERVE, "python", "job.py")
    asked = json.loads(said.partition("ASKED ")[2])
    assert len(asked) == 2
    assert calls_by_pid(dashboard) == {int(pid): count for pid, count in asked.items()}
    assert all(
        "Model" in one["label"] for pid, one in instances(dashboard).items() if str(pid) in asked
    )
