"""Jobs below `compilewatch run`: a fake library named torch that loads at once, programs that call
it, and the calls that arrive."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.agent.conftest import KEY
from tests.agent.programs import LIMIT, environment
from tests.agent.pythons import AGENT
from tests.agent.server import Dashboard

TORCH = """
def compile(model=None, **options):
    return model
"""
WORK = """
import os, sys
def work():
    import torch
    step = torch.compile(lambda: None)
    for _ in range(5):
        step()
"""


def folder_with_torch(folder: Path) -> Path:
    """Programs import this fake torch: these tests cover only the start of the agent, and the real
    torch takes seconds to load."""
    (folder / "library").mkdir()
    (folder / "library/torch.py").write_text(TORCH)
    (folder / "library/work.py").write_text(WORK)
    return folder


def variables(folder: Path, endpoint: str, **settings: str) -> dict[str, str]:
    """The environment of a command that a user starts in this folder."""
    known = environment(
        **{
            "ENDPOINT": endpoint,
            "API_KEY": KEY,
            "MODEL": "m",
            "SPOOL": "off",
            "INTERVAL": "200",
            **settings,
        }
    )
    own = {
        "PYTHONPATH": f"{AGENT}{os.pathsep}{folder / 'library'}",
        "PATH": f"{Path(sys.executable).parent}:{known['PATH']}",
    }
    return {**known, **own}


def run_below(
    folder: Path, endpoint: str, *words: str, given: str = "", **other: str
) -> subprocess.CompletedProcess[str]:
    """Runs `compilewatch run -- WORDS` to its end; `other` holds further environment variables."""
    full = [sys.executable, "-m", "compilewatch", "run", "--", *words]
    env = {**variables(folder, endpoint), **other}
    return subprocess.run(
        full,
        cwd=folder,
        env=env,
        input=given,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def calls_of_processes(dashboard: Dashboard) -> Counter[int]:
    """Calls by process."""
    pids = {request["instance"]["id"]: request["instance"]["pid"] for request in dashboard.requests}
    found: Counter[int] = Counter()
    for (instance, _, _), report in dashboard.acked.items():
        found[pids[instance]] += sum(region["calls"] for region in report.get("regions", []))
    return +found
