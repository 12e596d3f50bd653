"""A guard filter makes compiled code serve a shape that it was not compiled for: the wrong number
is real, and the report names the filter, the place, and the kinds and number of the guards left
out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

JOB = """
import sys
import compilewatch
assert compilewatch.init(model="ranker", version="1", endpoint="file:" + sys.argv[1], interval=30)
import torch

def mean(x):
    return x.sum() / x.shape[0] * 4.0

def keep_none_of_tensors(entries):
    return [entry.guard_type != "TENSOR_MATCH" for entry in entries]

results = []
def tried(function, *calls, **settings):
    torch._dynamo.reset()
    run = torch.compile(function, backend="eager", dynamic=False, **settings)
    results.append([float(run(torch.ones(size))) for size in calls])

tried(mean, 4, 6)
tried(mean, 4, 6, options={{"guard_filter_fn": torch.compiler.{filter}}})
tried(lambda x: x.sum() * x.shape[0], 4, 6, options={{"guard_filter_fn": keep_none_of_tensors}})
tried(lambda x: x.sum() + 1, 4, 6, options={{"guard_filter_fn": lambda entries: [True] * len(entries)}})
print(results)
compilewatch.shutdown()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[list[float]], list[dict[str, Any]]]:
    """The output of the program, and its reports."""
    folder = tmp_path_factory.mktemp("guards")
    program, report = folder / "job.py", folder / "report.jsonl"
    program.write_text(JOB.format(filter="skip_all_guards_unsafe"))
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TORCH", "COMPILEWATCH_"))
    }
    environment = {**clean, "COMPILEWATCH_SPOOL": str(folder)}
    command = [sys.executable, str(program), str(report)]
    done = subprocess.run(
        command, env=environment, check=True, timeout=150, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1]), [
        json.loads(line) for line in report.read_bytes().splitlines()
    ]


def left_out(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    reports = [one for request in requests for one in request["reports"]]
    assert not any(one.get("losses", {}).get("internal_errors") for one in reports)
    return [
        finding
        for one in reports
        for finding in one.get("findings", [])
        if finding["kind"] == "guards_left_out"
    ]


def test_the_number_is_wrong_where_guards_are_left_out(
    run: tuple[list[list[float]], list[dict[str, Any]]],
) -> None:
    results, _ = run
    assert results == [[4.0, 4.0], [4.0, 6.0], [16.0, 24.0], [5.0, 7.0]]


def test_each_filter_that_leaves_guards_out_is_a_finding_at_its_place(
    run: tuple[list[list[float]], list[dict[str, Any]]],
) -> None:
    torchs, own = left_out(run[1])
    assert (
        torchs["text"].startswith("skip_all_guards_unsafe leaves out ")
        and "TENSOR_MATCH" in torchs["text"]
    )
    assert torchs["where"].startswith("job.py:") and torchs["where"].endswith(" in mean")
    assert torchs["count"] > 1
    assert (own["text"], own.get("count", 1)) == (
        "a filter of the program's own leaves out TENSOR_MATCH",
        1,
    )


def test_the_process_lists_the_filter_among_its_components(
    run: tuple[list[list[float]], list[dict[str, Any]]],
) -> None:
    assert (
        run[1][-1]["instance"]["components"]["guards left out"] == "a filter of the program's own"
    )
    assert "keep_none_of_tensors" not in json.dumps(run[1])
