"""`aot_compile`, which vLLM uses, is one compilation with its function and no tuning at run time;
an export is no compilation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.tree import REPOSITORY

PROGRAM = """
import sys, torch, compilewatch
compilewatch.init(model="chat", version="1", endpoint="file:" + sys.argv[1], interval=0.1)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.randn(16, 16))

    def forward(self, x):
        return torch.relu(x @ self.weights).sum(-1)

net, x = Net(), torch.randn(4, 16)
with torch.no_grad():
    if sys.argv[2] == "aot":
        compiled = torch.compile(net.forward, fullgraph=True).aot_compile(((x,), {}))
        for _ in range(3):
            assert torch.allclose(compiled(net, x), net(x), atol=1e-5)
    else:
        torch.export.export(net, (x,))
compilewatch.shutdown()
"""


def compiles(tmp_path: Path, what: str) -> list[dict[str, Any]]:
    recording = tmp_path / "reports.jsonl"
    bare = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    environment = {
        **bare,
        "PYTHONPATH": str(REPOSITORY / "agents"),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
    }
    program = tmp_path / "serve.py"
    program.write_text(PROGRAM)
    subprocess.run(
        [sys.executable, str(program), str(recording), what],
        env=environment,
        check=True,
        timeout=170,
    )
    told = [json.loads(line) for line in recording.read_text().splitlines()]
    return [
        one
        for line in told
        for report in line.get("reports", [])
        for one in report.get("compiles", [])
    ]


@pytest.mark.needs("a C++ compiler")
def test_aot_compile_is_one_compilation_of_its_function_with_all_its_seconds(
    tmp_path: Path,
) -> None:
    [told] = compiles(tmp_path, "aot")
    assert (told["kind"], told["outcome"], told["frame"]) == ("first", "ok", "forward")
    assert told["file"].endswith("serve.py") and told["backend"] == "inductor"
    seconds = told["seconds"]
    assert {"dynamo", "aot", "inductor", "codegen"} <= seconds.keys()
    assert seconds["total"] >= 0.05 and seconds["total"] == pytest.approx(
        sum(seconds.values()) - seconds["total"], rel=0.01
    )


def test_an_export_compiles_nothing(tmp_path: Path) -> None:
    assert not [
        one
        for one in compiles(tmp_path, "export")
        if one["seconds"]["total"] > 0.01 or one["frame"]
    ]
