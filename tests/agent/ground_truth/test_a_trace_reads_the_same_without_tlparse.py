"""The reader that needs no tlparse finds the same as tlparse in the trace of a real run."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from tests.agent.ground_truth.cases import PROGRAMS
from tests.agent.ground_truth.raw_trace import raw_traces_read
from tests.agent.ground_truth.trace import traces_read


def test_both_readers_agree(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    for program in ("recompile.py", "limit.py", "break_item.py"):
        environment = {**os.environ, "TORCH_TRACE": str(traces)}
        subprocess.run(
            [sys.executable, program],
            cwd=PROGRAMS,
            env=environment,
            check=True,
            timeout=120,
            capture_output=True,
        )
    raw, parsed = raw_traces_read(traces), traces_read(traces, tmp_path / "read")
    assert len(raw) == len(parsed) == 3
    assert [asdict(one) for one in raw] == [asdict(one) for one in parsed]
