"""Guard lookups of a forked child belong to the child's own calls."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, sys, torch, compilewatch
compilewatch.init(model="m", version="1", endpoint="file:" + sys.argv[1], interval=200)
double = compilewatch.compile(lambda x: x * 2, name="double", backend="eager")
x = torch.ones(4)
for _ in range(5):
    double(x)
child = os.fork()
if child == 0:
    for _ in range(7):
        double(x)
    compilewatch.shutdown()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_child_knows_what_ran_compiled(tmp_path: Path) -> None:
    recording = tmp_path / "recording.jsonl"
    subprocess.run([sys.executable, "-c", PROGRAM, str(recording)], check=True, timeout=150)
    requests = [json.loads(line) for line in recording.read_text().splitlines()]
    regions = [
        region
        for request in requests
        for report in request["reports"]
        for region in report.get("regions", [])
    ]
    seven = [region for region in regions if region["calls"] == 7]
    assert [(region["compiled"], region["sampled"]) for region in seven] == [(7, 7)]
