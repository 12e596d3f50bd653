"""The table of the GPU programs: the agent's reports of a run compared with torch's own trace, and
the time of our hooks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilewatch.wire.messages import Compile

from tests.agent.ground_truth.cases import COLD, NO_START, WARM, Case
from tests.agent.ground_truth.raw_trace import raw_traces_read
from tests.agent.ground_truth.running import Run, read_recorded
from tests.agent.ground_truth.table import Row, rows_of

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).resolve().parents[2]
LIMIT = 200.0

CASES = (
    Case("resnet50", {"resnet50": 3}),
    Case("bert_lengths", {"bert": 6}),
    Case("gpt2_reduce_overhead", {"gpt2": 6}),
    Case("vit_training", {"vit": 3}),
    Case("skipped_graph", {"mutated": 4}),
    Case("silent_skip", {"on_the_host": 4}),
    Case("recording_storm", {"scaled": 36, "layer": 18}),
    Case("recompile_limit", {"unpadded": 32}, explained={"compile ids": NO_START}),
)


@dataclass
class Measured:
    """A cold or a warm run of a program: the rows, and other data of its recording."""

    run: Run
    rows: list[Row]
    spent: dict[str, float]
    """Seconds in our two compile-time hooks, in processor time and wall time, and the number of
    their calls."""
    compiles: list[Compile] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Share of our hooks in the time of the compilations."""
        return self.spent["hooks"] / max(
            sum(
                one.seconds["total"]
                for one in self.compiles
                if one.kind not in ("autotune", "cuda_graph")
            ),
            1e-9,
        )

    def all(self, name: str) -> list[Any]:
        """The findings, facts or regions of all windows of the process."""
        return [entry for report in self.run.recorded[0].reports for entry in getattr(report, name)]


def measured_twice(case: Case, folder: Path) -> list[Measured]:
    """A cold and a warm run with a private common cache."""
    return [_measured(case, start, folder) for start in (COLD, WARM)]


def _measured(case: Case, start: str, folder: Path) -> Measured:
    recording, traces = folder / f"{start}.jsonl", folder / f"{start}-trace"
    done = launched(
        [f"{case.name}.py"],
        recording,
        TORCH_TRACE=str(traces),
        TORCHINDUCTOR_CACHE_DIR=str(folder / "cache"),
    )
    run = Run(start, read_recorded(recording), raw_traces_read(traces))
    compiles = [one for report in run.recorded[0].reports for one in report.compiles]
    return Measured(run, rows_of(case, run), json.loads(done.splitlines()[-1]), compiles)


def launched(
    words: list[str], recording: Path, launcher: tuple[str, ...] = (), **variables: str
) -> str:
    """Runs a program with the agent recording to a file, and returns its output; a failing program
    fails the test with its output."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COMPILEWATCH_", "TORCH"))
    }
    settings = {
        "COMPILEWATCH_ENDPOINT": f"file:{recording}",
        "COMPILEWATCH_MODEL": "gpu",
        "PYTHONPATH": str(ROOT / "agents"),
    }
    command = [sys.executable, *launcher, "own_time.py", *words]
    environment = {**inherited, **settings, **variables}
    done = subprocess.run(
        command,
        cwd=PROGRAMS,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.stdout
