"""A frame that reached its limit before a fork runs eager in the child too, where torch logs
nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.agent.programs import run

PROGRAM = """
import os, torch, compilewatch
import torch._dynamo
torch._dynamo.config.recompile_limit = 2
compilewatch.init(model="m", interval=200)
double = compilewatch.compile(lambda x: x * 2, name="double", backend="eager", dynamic=False)
for length in range(2, 6):
    double(torch.ones(length))
child = os.fork()
if child == 0:
    for _ in range(7):
        double(torch.ones(50))
    compilewatch.shutdown()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def eager_fallbacks(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The eager fallbacks that an instance reported: the dashboard knows each instance only by its
    own reports."""
    return [
        fact
        for report in request["reports"]
        for fact in report.get("facts", [])
        if fact["kind"] == "latched_eager"
    ]


def test_calls_of_a_child_count_as_eager(tmp_path: Path) -> None:
    recording = tmp_path / "reports.jsonl"
    done = run(PROGRAM, ENDPOINT=f"file:{recording}")
    assert done.returncode == 0, done.stderr
    child, parent = (json.loads(line) for line in recording.read_text().splitlines())
    [report] = child["reports"]
    [told], [told_before] = (eager_fallbacks(one) for one in (child, parent))
    assert told["data"] == told_before["data"] and told["data"]["cause"] == "limit"
    assert told["at"] > told_before["at"], (
        "the dashboard would refuse a child's report with the parent's old fallback time"
    )
    [region] = report["regions"]
    assert (region["calls"], region["eager_by"]) == (7, {"limit": 7})
    assert report["gauges"]["degraded_frames"] == 1


ONLY_COMPILES = """
import os, torch, compilewatch
compilewatch.init(model="m", interval=200)
child = os.fork()
if child == 0:
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
    compilewatch.shutdown()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_child_that_only_compiles_reports_the_fallback(tmp_path: Path) -> None:
    recording = tmp_path / "reports.jsonl"
    done = run(ONLY_COMPILES, ENDPOINT=f"file:{recording}")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in recording.read_text().splitlines()]
    compiles = dict.fromkeys((request["instance"]["id"] for request in found), 0)
    for request in found:
        compiles[request["instance"]["id"]] += sum(
            len(report.get("compiles", [])) for report in request["reports"]
        )
    assert sorted(compiles.values()) == [0, 1]
