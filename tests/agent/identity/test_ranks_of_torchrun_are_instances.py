"""Each rank of a torchrun job is an instance of one job; if one rank fails and the others are
killed, the windows sent before are stored once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.agent.conftest import KEY
from tests.agent.programs import environment
from tests.agent.server import Dashboard
from tests.architecture.tree import REPOSITORY
from tests.faults.size import sized

RANKS = sized(2, 8)
JOB = """
import os, sys, time, compilewatch
compilewatch.init(model="m", interval=0.2, kind="training")
step = compilewatch.watch(lambda: time.sleep(0.001), name="step")
rank = int(os.environ["RANK"])
began = time.monotonic()
while time.monotonic() - began < 3.0:
    step()
if sys.argv[1] == "fails":
    if rank == 1:
        raise SystemExit(7)
    while True:  # until the launcher sends SIGTERM
        step()
"""


def launch(
    folder: Path, dashboard: Dashboard, how: str, *options: str
) -> subprocess.CompletedProcess[str]:
    (folder / "job.py").write_text(JOB)
    words = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        *options,
        "--nproc-per-node",
        str(RANKS),
        "job.py",
        how,
    ]
    settings = environment(ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    return subprocess.run(
        words, cwd=folder, env=settings, capture_output=True, text=True, timeout=170, check=False
    )


def test_ranks_report_as_one_job(tmp_path: Path, dashboard: Dashboard) -> None:
    done = launch(tmp_path, dashboard, "ends", "--standalone")
    assert done.returncode == 0, done.stderr
    found = {request["instance"]["id"]: request["instance"] for request in dashboard.requests}
    assert sorted(
        (one.get("rank", 0), one.get("local_rank", 0), one["world_size"]) for one in found.values()
    ) == [(rank, rank, RANKS) for rank in range(RANKS)]
    [job] = {one["job"] for one in found.values()}
    assert job not in ("", "none")


def test_a_rank_that_fails_takes_the_others_down_at_once(
    tmp_path: Path, dashboard: Dashboard
) -> None:
    done = launch(
        tmp_path, dashboard, "fails", "--rdzv-endpoint", "localhost:0", "--rdzv-backend", "c10d"
    )
    assert done.returncode == 1
    said = done.stderr.replace("compilewatch.init", "").replace(str(REPOSITORY), "")
    assert "exitcode  : 7" in said and "compilewatch" not in said
    assert "Signal 15 (SIGTERM)" in done.stderr or "SIGTERM" in done.stderr
    found = {request["instance"]["id"]: request["instance"] for request in dashboard.requests}
    assert sorted(one.get("rank", 0) for one in found.values()) == list(range(RANKS))
    ranges = sorted((instance, seq) for instance, seq, _ in dashboard.acked)
    assert len(ranges) == len(set(ranges))
    [job] = {one["job"] for one in found.values()}
    assert job not in ("", "none")
