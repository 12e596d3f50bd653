"""A step of some tens of microseconds, replayed as a CUDA graph: the test prints the time that
watching adds. The limit is generous, since the noise of the machine is larger than the goal."""

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
    results = json.loads(done.stdout.splitlines()[-1])
    print(
        done.stdout,
        f"watched {results['watched_percent']}%, in normal operation "
        f"{results['usual_percent']}%, goal {GOAL_PERCENT}%",
    )
    assert results["timed_one_in"] > 1
    assert results["usual_percent"] < BOUND_PERCENT
