"""Processes that fork while another of their threads compiles: the parent's account stays right,
and a child that does not use torch's compiler reports its own calls and nothing of its parent's. A
child that compiles waits for a lock of torch's that no thread will release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent.programs import run

CHILDREN, CALLS = 4, 7

JOB = f"""
import os, sys, threading, time
import torch, compilewatch

compilewatch.init(model="m", version="1", interval=0.5)
compiling_now, enough, compiled = threading.Event(), threading.Event(), []

def slow(graph, inputs):
    compiling_now.set()
    time.sleep(0.3)
    return graph.forward

def compile_them():
    while not enough.is_set():
        one = eval(f"lambda x: x + {{len(compiled)}}")  # new code, without a cache entry
        torch.compile(one, backend=slow)(torch.ones(2))
        compiled.append(1)

plain = compilewatch.watch(lambda: None, name="plain")
compiling = threading.Thread(target=compile_them)
compiling.start()
children = []
while len(children) < {CHILDREN}:
    compiling_now.wait()
    # Some forks happen during a compilation, some just after its end, while the agent waits for torch's record.
    time.sleep(0.05 * len(children))
    compiling_now.clear()
    child = os.fork()
    if child == 0:
        for _ in range({CALLS}):
            plain()
        time.sleep(2.5)
        plain()
        compilewatch.shutdown()
        os._exit(0)
    children.append(child)
enough.set()
plain()
compiling.join()
assert [os.waitpid(child, 0)[1] for child in children] == [0] * {CHILDREN}
compilewatch.shutdown()
print(len(compiled))
"""


@pytest.mark.timeout(700)
def test_a_fork_while_another_thread_compiles(tmp_path: Path) -> None:
    recording = tmp_path / "reports.jsonl"
    done = run(JOB, ENDPOINT=f"file:{recording}", limit=600.0)
    assert (done.returncode, done.stderr) == (0, "")
    told: dict[int, list[dict[str, Any]]] = {}
    for line in recording.read_text().splitlines():
        request = json.loads(line)
        told.setdefault(request["instance"]["pid"], []).extend(request["reports"])
    assert int(done.stdout) >= 2
    accounts = [(calls(reports), compilations(reports)) for reports in told.values()]
    assert sorted(accounts) == [(1, int(done.stdout)), *[(CALLS + 1, 0)] * CHILDREN]
    assert all(
        losses.get("internal_errors", 0) == 0
        for reports in told.values()
        for losses in [reports[-1].get("losses", {})]
    )
    stuck = [
        report["gauges"]["compiling_for"]
        for reports in told.values()
        if not compilations(reports)
        for report in reports
    ]
    assert set(stuck) == {0.0}, "a child compiles nothing for any state of its parent at the fork"


def calls(reports: list[dict[str, Any]]) -> int:
    return sum(region["calls"] for report in reports for region in report.get("regions", []))


def compilations(reports: list[dict[str, Any]]) -> int:
    return sum(len(report.get("compiles", [])) for report in reports)
