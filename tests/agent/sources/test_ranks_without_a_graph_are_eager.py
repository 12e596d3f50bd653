"""Ranks whose DistributedDataParallel holds a Sequential: torch looks code up at each call, and the
code has no graph."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.programs import environment

RANKS = 2
JOB = """
import torch, torch.distributed, compilewatch
compilewatch.init(model="m", version="1", kind="training")
torch.distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))
step = compilewatch.compile(model, backend="eager", name="step")
for _ in range(12):
    step(torch.ones(2, 4)).sum().backward()
compilewatch.shutdown()
torch.distributed.destroy_process_group()
"""


@pytest.mark.engines_only
def test_each_rank_reports_that_its_calls_met_no_graph(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    words = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(RANKS),
        "job.py",
    ]
    settings = environment(ENDPOINT=f"file:{tmp_path}/reports")
    done = subprocess.run(
        words, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=170, check=False
    )
    assert done.returncode == 0, done.stderr
    requests = [
        json.loads(line)
        for file in tmp_path.glob("reports*")
        for line in file.read_text().splitlines()
    ]
    received = [
        (request["instance"].get("rank", 0), report)
        for request in requests
        for report in request["reports"]
    ]
    for rank in range(RANKS):
        regions = [
            region
            for one, report in received
            if one == rank
            for region in report.get("regions", [])
        ]
        counts = [
            (sum(region.get("eager_by", {}).values()), region.get("compiled", 0))
            for region in regions
        ]
        assert tuple(map(sum, zip(*counts, strict=True))) == (11, 0)
        assert {cause for region in regions for cause in region.get("eager_by", {})} == {"no_graph"}
        empty = [
            one
            for each, report in received
            if each == rank
            for one in report.get("compiles", [])
            if one["kind"] == "empty"
        ]
        assert empty and all(one["frame"] and one["file"] and one["line"] for one in empty)
