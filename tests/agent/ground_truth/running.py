"""Runs a program twice, cold and then warm, as real processes with the agent and torch's own trace,
and reads both recordings."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from compilewatch.wire.codec import loads
from compilewatch.wire.messages import Identity, Report, Request

from tests.agent.ground_truth.cases import COLD, PROGRAMS, WARM, Case
from tests.agent.ground_truth.trace import Trace, traces_read
from tests.environment import QUICK_INDUCTOR

LIMIT = 170.0
AGENTS = PROGRAMS.parents[3] / "agents"


@dataclass
class Recorded:
    """The reports that the agent of one process recorded."""

    identity: Identity
    reports: list[Report]


@dataclass
class Run:
    """One start of a program: the agent's account and the trace of each process, in the order of
    the ranks."""

    start: str
    recorded: list[Recorded]
    traces: list[Trace]


def run_twice(
    case: Case, folder: Path, limit: float = LIMIT, starts: tuple[str, ...] = (COLD, WARM)
) -> list[Run]:
    """The cold and the warm run, or the named runs, with their own cache. Raises AssertionError
    with the program's last output."""
    return [_run(case, start, folder, limit) for start in starts]


def _run(case: Case, start: str, folder: Path, limit: float) -> Run:
    recording, traces = folder / f"{start}.jsonl", folder / f"{start}-trace"
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COMPILEWATCH_", "TORCH"))
    }
    environment = {
        **inherited,
        "PYTHONPATH": os.pathsep.join([str(AGENTS), os.environ.get("PYTHONPATH", "")]),
        "COMPILEWATCH_ENDPOINT": f"file:{recording}",
        "COMPILEWATCH_MODEL": case.name,
        "TORCH_TRACE": str(traces),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        **QUICK_INDUCTOR,
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, *case.command]
    done = subprocess.run(
        command,
        cwd=PROGRAMS,
        env=environment,
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
    assert done.returncode == 0, (
        f"{case.name} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    return Run(start, read_recorded(recording), traces_read(traces, folder / f"{start}-read"))


def read_recorded(recording: Path) -> list[Recorded]:
    """The instances of a recording, by rank."""
    found: dict[str, Recorded] = {}
    for line in recording.read_bytes().splitlines():
        request = loads(Request, line)
        one = found.setdefault(request.instance.id, Recorded(request.instance, []))
        one.identity = request.instance
        one.reports += request.reports
    return sorted(found.values(), key=lambda one: one.identity.rank)
