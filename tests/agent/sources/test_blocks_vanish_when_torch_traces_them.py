"""A block or a mark inside a function that torch compiles leaves no graph break and no error: it is
part of the compiled function."""

from __future__ import annotations

import subprocess
import sys

import compilewatch
import pytest
import torch
from compilewatch.instrument.dynamo_skip import skip_frames

from tests.agent.sources.conftest import Seen


def traced(x: torch.Tensor) -> torch.Tensor:
    compilewatch.ready()
    with compilewatch.region("inside", items=3):
        y = x * 2
    compilewatch.mark("half way")
    return y + 1


@pytest.mark.parametrize("fullgraph", [True, False])
def test_a_block_stays_in_one_graph(watching: Seen, fullgraph: bool) -> None:
    skip_frames()
    call = compilewatch.compile(traced, backend="eager", fullgraph=fullgraph)
    for _ in range(3):
        assert call(torch.ones(2)).tolist() == [3.0, 3.0]
    report = watching.look()
    assert [(compiled.frame, compiled.outcome) for compiled in report.compiles] == [
        ("traced", "ok")
    ]
    assert [(region.name, region.calls) for region in report.regions] == [("traced", 3)]
    assert report.findings == []


def test_a_block_compiles_while_the_agent_is_off() -> None:
    program = f"import compilewatch, torch\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[2.0, 2.0]\n"), done.stderr


PROGRAM = """
@torch.compile(backend="eager", fullgraph=True)
def step(x):
    with compilewatch.region("inside"):
        return x + 1
print(step(torch.ones(2)).tolist())
"""
