"""The cold start of a real process: its stages until a call ran compiled, and until `ready()`, with
the unaccounted time."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from compilewatch.identity.process_start import process_start_time
from compilewatch.recording.cold_start import Stage, stages_of

from tests.agent.programs import run

JOB = """
import time
import compilewatch
compilewatch.init(model="ranker", version="1", interval=1.0)
import torch
time.sleep(0.3)
compilewatch.mark("weights loaded")
step = compilewatch.watch(torch.compile(lambda x: torch.relu(x) * 2, backend="{backend}"), name="step")
step(torch.ones(8))
deadline = time.monotonic() + 2.5
while time.monotonic() < deadline:
    step(torch.ones(8))
    time.sleep(0.05)
{more}
compilewatch.shutdown()
"""
LATE = "import torch\n" + JOB.replace("import torch\n", "", 1)


def starts(
    folder: Path, program: str, **settings: str
) -> tuple[list[dict[str, Any]], dict[str, Any], float]:
    """The reported start, the identity, and the time at which the program was started."""
    recording, before = folder / "reports.jsonl", time.time()
    done = run(program, ENDPOINT=f"file:{recording}", **settings)
    assert (done.returncode, done.stderr) == (0, "")
    requests = [json.loads(line) for line in recording.read_text().splitlines()]
    facts = [
        fact
        for request in requests
        for report in request["reports"]
        for fact in report.get("facts", [])
    ]
    told = [
        fact["data"]
        for fact in facts
        if fact["kind"] == "mark" and fact["data"].get("name") == "cold start"
    ]
    return told, requests[-1]["instance"], before


@pytest.mark.needs("a C++ compiler")
def test_a_start_is_reported_with_its_stages_once_a_call_ran_compiled(tmp_path: Path) -> None:
    (told,), instance, before = starts(tmp_path, JOB.format(backend="inductor", more=""))
    stages = told["stages"]
    assert list(stages) == [
        "before init",
        "import torch",
        "weights loaded",
        "import torch._dynamo",
        "compile",
        "first compiled call",
    ]
    assert told["until"] == "first call"
    # The kernel counts in hundredths of a second.
    assert before - 0.05 <= told["began"] <= time.time() and instance["started"] == pytest.approx(
        told["began"], abs=0.05
    )
    assert stages["weights loaded"][1] >= 0.3
    assert (
        min(
            stages[stage][1]
            for stage in ("import torch", "import torch._dynamo", "compile", "first compiled call")
        )
        > 0
    )
    assert told["phases"]["dynamo"] > 0
    begins = [begin for begin, _ in stages.values()]
    assert begins == sorted(begins)
    explained = sum(seconds for _, seconds in stages.values())
    assert explained + told["unaccounted"] == pytest.approx(told["total"], abs=1e-3)
    last = sum(stages["first compiled call"])
    assert told["total"] == pytest.approx(last, abs=1e-3), (
        "it ends with the call that compiled last before the steady ones"
    )


def test_a_start_is_reported_again_at_ready(tmp_path: Path) -> None:
    (first, last), _, _ = starts(
        tmp_path, JOB.format(backend="eager", more="compilewatch.ready()\ntime.sleep(0.1)")
    )
    assert (first["until"], last["until"]) == ("first call", "ready")
    assert last["total"] > first["total"] + 2.0
    assert last["unaccounted"] > 2.0, (
        "what the job did between its first call and ready() has no name"
    )


@pytest.mark.engines_only
def test_a_torch_imported_before_init_is_part_of_the_time_before(tmp_path: Path) -> None:
    (told,), _, _ = starts(tmp_path, LATE.format(backend="eager", more=""))
    assert list(told["stages"]) == [
        "before init",
        "weights loaded",
        "import torch._dynamo",
        "compile",
        "first compiled call",
    ]
    assert told["stages"]["before init"][1] > 0.3


SLOW = """
import time
import compilewatch
compilewatch.init(model="ranker", version="1", interval=1.0)
import torch

def slow(graph, inputs):
    def run(*args):
        time.sleep(first.pop() if first else 0.0)
        return graph(*args)
    return run

first = [0.5]
step = compilewatch.watch(torch.compile(lambda x: torch.relu(x) * 2, backend=slow), name="step")
step(torch.ones(8))
deadline = time.monotonic() + 2.5
while time.monotonic() < deadline:
    step(torch.ones(8))
    time.sleep(0.05)
compilewatch.shutdown()
"""


def test_the_rest_of_a_call_after_its_compilation_is_a_stage(tmp_path: Path) -> None:
    (told,), _, _ = starts(tmp_path, SLOW)
    assert told["stages"]["first compiled call"][1] >= 0.5
    assert told["stages"]["compile"][1] + 0.5 <= told["total"]


def test_strict_redaction_keeps_the_stages_and_not_the_names_of_marks(tmp_path: Path) -> None:
    (told,), _, _ = starts(tmp_path, JOB.format(backend="eager", more=""), REDACT="strict")
    assert set(told["stages"]) >= {"before init", "import torch", "compile"}
    assert "weights loaded" not in json.dumps(told)
    assert "dynamo" in told["phases"]


def test_the_start_of_this_process_is_the_kernels() -> None:
    entry = Path(f"/proc/{os.getpid()}")
    assert (
        abs(process_start_time() - entry.stat().st_ctime) < 5.0
        or process_start_time() < time.time()
    )
    assert process_start_time() == pytest.approx(process_start_time(), abs=0.05)


def test_overlapping_stretches_are_counted_once_for_the_first_named() -> None:
    stretches = [
        Stage("import torch", 10.0, 14.0),
        Stage("compile", 12.0, 18.0),
        Stage("compile", 15.0, 16.0),
    ]
    stages, unaccounted = stages_of(9.0, 20.0, stretches, {})
    assert stages == {"import torch": [1.0, 4.0], "compile": [5.0, 4.0]}
    assert unaccounted == 3.0


def test_a_mark_explains_only_the_time_since_the_last_known_event() -> None:
    stages, unaccounted = stages_of(
        0.0, 10.0, [Stage("import torch", 1.0, 2.0)], {"weights loaded": 5.0, "later": 30.0}
    )
    assert stages == {"import torch": [1.0, 1.0], "weights loaded": [2.0, 3.0]}
    assert unaccounted == 6.0
