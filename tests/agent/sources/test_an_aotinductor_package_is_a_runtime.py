"""A package of AOTInductor is loaded and called: nothing is compiled here, and its calls have a
runtime of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, torch
import compilewatch
from compilewatch.recording.recorder import RECORDER

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x).relu()

compilewatch.init(model="ranker")
net, x = Net().eval(), torch.ones(2, 4)
quick = {"aot_inductor.precompile_headers": False, "aot_inductor.compile_wrapper_opt_level": "O0"}
exported = torch.export.export(net, (x,))
path = torch._inductor.aoti_compile_and_package(exported, package_path=sys.argv[1], inductor_configs=quick)
package = torch._inductor.aoti_load_package(path)
watched = compilewatch.watch(package, name="net")
for _ in range(5):
    torch.testing.assert_close(watched(x), net(x))
around = compilewatch.watch(lambda x: package(x), name="around")
RECORDER.count_lookups(True)  # a counting period ended while the package was built
for _ in range(5):
    around(x)
assert watched.get_constant_fqns() == package.get_constant_fqns()
compilewatch.shutdown()
assert not hasattr(torch._inductor.package.load_package, "__wrapped__")
"""


@pytest.mark.needs("a C++ compiler")
def test_its_calls_are_counted_and_its_loading_is_a_mark(tmp_path: Path) -> None:
    recording = tmp_path / "reports"
    environment = {
        **os.environ,
        "COMPILEWATCH_ENDPOINT": f"file:{recording}",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "net.pt2")]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=170, check=False
    )
    assert done.returncode == 0, done.stderr
    requests = [json.loads(line) for line in recording.read_text().splitlines()]
    reports = [report for request in requests for report in request["reports"]]
    found = {region["name"]: region for report in reports for region in report.get("regions", [])}
    assert (
        found["net"]["runtime"],
        found["net"]["calls"],
        found["net"]["compiled"],
        found["net"]["sampled"],
    ) == ("aotinductor", 5, 5, 5)
    assert (found["around"]["calls"], found["around"]["compiled"]) == (5, 5)
    assert not any("unknown" in region for region in found.values())
    marks = [fact["data"] for report in reports for fact in report.get("facts", [])]
    (loaded,) = [mark for mark in marks if mark["name"] == "AOTInductor package loaded"]
    assert loaded["seconds"] > 0
    assert requests[-1]["instance"]["capabilities"]["aotinductor"] == ["yes", ""]
