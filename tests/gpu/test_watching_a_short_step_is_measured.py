"""A step of some tens of microseconds, replayed as a CUDA graph: what watching adds is printed, and
bounded generously, because the machine's own noise is larger than the goal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
GOAL_PERCENT, BOUND_PERCENT = 1.0, 25.0


def test_watching_adds_little_to_a_short_step() -> None:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "agents")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "step.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    print(
        done.stdout,
        f"watched {said['watched_percent']} %, in usual operation {said['usual_percent']} "
        f"%, goal {GOAL_PERCENT} %",
    )
    assert said["timed_one_in"] > 1
    assert said["usual_percent"] < BOUND_PERCENT
