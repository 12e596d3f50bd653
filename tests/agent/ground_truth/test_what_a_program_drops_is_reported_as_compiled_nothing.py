"""If compile was requested and no call met compiled code, the region has one finding and one fact;
an eager region has neither."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.agent.programs import run

PROGRAM = """
import sys, torch, compilewatch
compilewatch.init(model="m", version="1", endpoint="file:" + sys.argv[1])

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())

    def forward(self, x):
        return self.net(x)

    def load(self):
        self = torch.compile(self, backend="eager")

def failing(graph, inputs):
    raise RuntimeError("no C++ compiler here")

def fallen_back(x):
    try:
        return swallowed(x)
    except Exception:
        return x * 2

class Service:
    def __init__(self):
        self.model = Model()

    def predict(self, x):
        return self.model(x)

    def prepare(self, x):
        return x + 1

dropped, reloaded, sequence, works = Model(), Model(), torch.nn.Sequential(torch.nn.Linear(8, 8)), Model()
dropped.load()
reloaded.compile(backend="eager")
reloaded = Model()
sequence.compile(backend="eager")
swallowed = torch.compile(lambda x: x * 2, backend=failing)
service = Service()
torch.compile(service.model, backend="eager")
works.forward = torch.compile(works.forward, backend="eager")
torch._dynamo.config.suppress_errors = False
suppressed = torch.compile(lambda x: x * 3, backend=failing)

regions = {
    "dropped": lambda x: dropped(x),
    "reloaded": lambda x: reloaded(x),
    "sequence": sequence,
    "swallowed": fallen_back,
    "suppressed": suppressed,
    "service": service.predict,
    "prepare": service.prepare,
    "works": lambda x: works(x),
    "eager": lambda x: x - 1,
    "few": lambda x: dropped(x),
}
regions = {name: compilewatch.watch(target, name=name) for name, target in regions.items()}
x = torch.ones(4, 8)
for _ in range(60):
    for name, call in regions.items():
        if name != "few":
            torch._dynamo.config.suppress_errors = name == "suppressed"
            call(x)
for _ in range(49):
    regions["few"](x)
compilewatch.shutdown()
"""


def reported_in(recording: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    reports = [
        report
        for line in recording.read_text().splitlines()
        for report in json.loads(line).get("reports", [])
    ]
    facts = [
        fact["data"]
        for report in reports
        for fact in report.get("facts", [])
        if fact["kind"] == "compiled_nothing"
    ]
    return facts, [
        one
        for report in reports
        for one in report.get("findings", [])
        if one["kind"] == "compiled_nothing"
    ]


def test_each_region_that_compiled_nothing_is_reported_once(tmp_path: Path) -> None:
    done = run(PROGRAM, str(tmp_path / "reports"))
    assert done.returncode == 0, done.stderr
    facts, findings = reported_in(tmp_path / "reports")
    why = {fact["region"]: fact["why"] for fact in facts}
    assert len(facts) == len(why) and all(fact["calls"] >= 50 for fact in facts)
    assert sorted(why) == ["dropped", "reloaded", "sequence", "service", "suppressed", "swallowed"]
    assert all(
        "`self = torch.compile(self)`" in why[name]
        for name in ("dropped", "reloaded", "sequence", "service")
    )
    assert "swallowed" in why["swallowed"] and "suppress_errors" in why["suppressed"]
    assert all(finding["text"].startswith("compile was requested for ") for finding in findings)
    assert any("<string>" in finding["where"] for finding in findings)
