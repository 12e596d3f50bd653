"""Code that was compiled ahead of time is compiled by definition: its calls count as compiled, both
watched directly and inside another call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.agent.programs import run

PROGRAM = """
import sys, torch, compilewatch
from compilewatch.recording.recorder import RECORDER
compilewatch.init(model="chat", version="1", endpoint="file:" + sys.argv[1])

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.randn(16, 16))

    def forward(self, x):
        return torch.relu(x @ self.weights).sum(-1)

net, x = Net().eval(), torch.randn(4, 16)
with torch.no_grad():
    made = torch.compile(net.forward, fullgraph=True, backend=sys.argv[3]).aot_compile(((x,), {}))
    made.save_compiled_function(sys.argv[2])
    loaded = torch.compiler.load_compiled_function(open(sys.argv[2], "rb"))
    made_calls, loaded_calls = compilewatch.watch(made, name="made"), compilewatch.watch(loaded, name="loaded")
    around = compilewatch.watch(lambda x: made(net, x), name="around")
    for _ in range(9):
        assert torch.allclose(made_calls(net, x), net(x), atol=1e-5)
        assert torch.allclose(loaded_calls(net, x), net(x), atol=1e-5)
        around(x)
    RECORDER.count_lookups(False)  # as between two counting periods
    for _ in range(9):
        made_calls(net, x)
compilewatch.shutdown()
"""


def regions_of(recording: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in recording.read_text().splitlines():
        for report in json.loads(line).get("reports", []):
            for region in report.get("regions", []):
                found.setdefault(region["name"], []).append(region)
    return found


def test_each_call_of_code_compiled_ahead_counts_as_compiled(tmp_path: Path) -> None:
    done = run(PROGRAM, str(tmp_path / "reports"), str(tmp_path / "net.bin"), "eager")
    assert done.returncode == 0, done.stderr
    found = regions_of(tmp_path / "reports")
    counts = {
        name: (sum(one["calls"] for one in each), sum(one.get("compiled", 0) for one in each))
        for name, each in found.items()
    }
    assert counts == {"made": (18, 18), "loaded": (9, 9), "around": (9, 9)}
    runtimes = {
        name: {one.get("runtime", "torch.compile") for one in each} for name, each in found.items()
    }
    assert runtimes == {"made": {"aot"}, "loaded": {"aot"}, "around": {"torch.compile"}}
