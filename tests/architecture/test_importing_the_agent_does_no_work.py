"""`import compilewatch` loads no torch, starts no thread and touches no network."""

import subprocess
import sys

from tests.architecture.tree import REPOSITORY

PROGRAM = """
import sys, threading
before = set(sys.modules)
opened = []
sys.addaudithook(lambda event, _: opened.append(event) if event.startswith("socket.") else None)
import compilewatch
loaded = set(sys.modules) - before
heavy = sorted(name for name in loaded if name.split(".")[0] in {"torch", "jax", "numpy", "triton"})
print(heavy, threading.active_count(), opened)
"""


def test_importing_the_agent_does_no_work() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=REPOSITORY / "agents",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.stdout.strip() == "[] 1 []", result.stdout + result.stderr
