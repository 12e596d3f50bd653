"""Ranks that torchrun ends, because torchrun is ended or another rank failed, send their last
window and report what ended them."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.agent.frameworks.services import calls_by_pid, endings, instances, serving
from tests.agent.server import Dashboard

JOB = """
import os, sys, time
from pathlib import Path
import compilewatch
compilewatch.init(model="m", interval=200, kind="training")
compilewatch.agent.AGENT.worker.wait_until_loaded()
step = compilewatch.watch(lambda: None, name="forward")
for _ in range(40):
    step()
rank = int(os.environ["RANK"])
Path(f"ready{rank}").touch()
if sys.argv[1] == "fails" and rank == 1:
    while not Path("ready0").exists():
        time.sleep(0.02)
    raise SystemExit(7)
time.sleep(100)
"""
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "job.py")


def test_ending_the_launcher_ends_the_ranks(tmp_path: Path, dashboard: Dashboard) -> None:
    with serving(tmp_path, dashboard, JOB, *TORCHRUN, "stays") as launcher:
        while not all((tmp_path / f"ready{rank}").exists() for rank in range(2)):
            assert launcher.process.poll() is None
        launcher.stop()
    assert sorted(calls_by_pid(dashboard).values()) == [40, 40]
    assert endings(dashboard) == [{"signal": "SIGTERM"}] * 2
    assert sorted(one.get("rank", 0) for one in instances(dashboard).values()) == [0, 1]


def test_a_rank_that_fails_takes_the_other_down(tmp_path: Path, dashboard: Dashboard) -> None:
    with serving(tmp_path, dashboard, JOB, *TORCHRUN, "fails") as launcher:
        assert launcher.process.wait(100) == 1
    assert sorted(calls_by_pid(dashboard).values()) == [40, 40]
    assert {"signal": signal.SIGTERM.name} in endings(dashboard) and len(endings(dashboard)) == 2
