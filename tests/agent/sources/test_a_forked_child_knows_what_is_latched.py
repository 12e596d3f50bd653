"""A frame that reached its limit before a fork runs eager in the child too, where torch says nothing any more."""

from __future__ import annotations

import json
from pathlib import Path

from tests.agent.programs import run

PROGRAM = """
import os, torch, compilewatch
import torch._dynamo
torch._dynamo.config.recompile_limit = 2
compilewatch.init(model="m", interval=200)
double = compilewatch.compile(lambda x: x * 2, name="double", backend="eager", dynamic=False)
for length in range(2, 6):
    double(torch.ones(length))
child = os.fork()
if child == 0:
    for _ in range(7):
        double(torch.ones(50))
    compilewatch.shutdown()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_its_calls_count_as_eager(tmp_path: Path) -> None:
    recording = tmp_path / "reports.jsonl"
    done = run(PROGRAM, ENDPOINT=f"file:{recording}")
    assert done.returncode == 0, done.stderr
    child, _parent = (json.loads(line) for line in recording.read_text().splitlines())
    [report] = child["reports"]
    [region] = report["regions"]
    assert (region["calls"], region["eager_by"]) == (7, {"limit": 7})
    assert report["gauges"]["degraded_frames"] == 1
