"""Warm-up of a region ends when the region is served compiled, or at `ready()`, and never restarts:
a later call that compiles is stalled."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from compilewatch.wire.messages import Region

from tests.agent.ground_truth.running import read_recorded
from tests.agent.programs import run

JOB = """
import json, threading
from collections import Counter
from functools import cache
import torch, compilewatch

compilewatch.init(model="m", version="1")
compiled = threading.local()
truth = {}

def quick(graph, inputs):
    compiled.here = True
    if inputs[-1].shape[0] == 5:
        raise RuntimeError("no kernel for this size")
    return graph.forward

def count(call, *args):
    "Calls, and counts as the program sees it: a call that compiles is warm-up until one was served, or the job is ready."
    mine = truth.setdefault(call.__name__, Counter())
    compiled.here = False
    call(*args)
    warm = not (mine["served"] or ready)
    mine["calls"] += 1
    mine["served" if not compiled.here else "warmup" if warm else "stalled"] += 1

def named(name):
    def give(fn):
        fn.__name__ = name
        return compilewatch.watch(fn, name=name)
    return give

ready = False
of_size = torch.compile(lambda x: x * 2, backend=quick, dynamic=False)

@named("one size in three fails")
def fails(size):
    try:
        of_size(torch.ones(size))
    except Exception:
        return torch.ones(size) * 2

@named("generated code")
def generated(number):
    made(number)(torch.ones(2))

@cache
def made(number):
    return torch.compile(eval(f"lambda x: x + {number}"), backend=quick)

@named("reset")
def resets(size):
    of_size(torch.ones(size))

@named("shapes")
def shapes(size):
    of_shape(torch.ones(size))

of_shape = torch.compile(lambda x: x * 3, backend=quick, dynamic=False)

@named("ready without a served call")
def late(number):
    made(number)(torch.ones(2))

@named("first called after ready")
def last(number):
    made(number)(torch.ones(2))

@named("never compiles")
def eager():
    return 1

for number in range(75):
    count(fails, 3 + number % 3)
for number in [0, 0, *range(1, 20)]:
    count(generated, number)
for number in range(12):
    number % 4 == 2 and torch._dynamo.reset()
    count(resets, 3)
for size in (2, 2, 4, 4, 1024, 4096, 1024):
    count(shapes, size)
for number in range(100, 103):
    count(late, number)
for number in range(10):
    count(eager)
compilewatch.ready()
ready = True
for number in range(200, 203):
    count(late, number)
    count(last, number + 100)
compilewatch.shutdown()
print(json.dumps(truth))
"""


Counts = dict[str, Counter[str]]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Counts, list[Region]]:
    """The counts of the program by region, and the reports of the agent."""
    recording = tmp_path_factory.mktemp("job") / "told.jsonl"
    done = run(JOB, ENDPOINT=f"file:{recording}", SPOOL="off")
    assert done.returncode == 0, done.stderr[-2000:]
    [recorded] = read_recorded(recording)
    truth = {name: +Counter(counts) for name, counts in json.loads(done.stdout).items()}
    return truth, [region for report in recorded.reports for region in report.regions]


@pytest.mark.parametrize(
    ("name", "stalled"),
    [
        ("one size in three fails", 24),
        ("generated code", 19),
        ("reset", 3),
        ("shapes", 3),
        ("ready without a served call", 3),
        ("first called after ready", 3),
        ("never compiles", 0),
    ],
)
def test_the_agent_reports_as_stalled_the_calls_that_the_program_counts(
    counted: tuple[Counts, list[Region]], name: str, stalled: int
) -> None:
    truth, regions = counted
    reported: Counter[str] = Counter()
    for region in (region for region in regions if region.name == name):
        sketches = {"served": region.latency, "warmup": region.warmup, "stalled": region.stalled}
        reported += Counter(
            calls=region.calls,
            **{kind: sketch.count for kind, sketch in sketches.items() if sketch},
        )
    assert reported == truth[name]
    assert reported["stalled"] == stalled


def test_each_region_reports_that_it_knows_stalled_calls(
    counted: tuple[Counts, list[Region]],
) -> None:
    assert [region.name for region in counted[1] if region.stalled is None] == []
