"""A forked or spawned child reports as another instance, with only its own calls, and only if it
made calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.programs import run
from tests.agent.server import Dashboard
from tests.agent.short_calls import BURST

FORK = """
import os, compilewatch
compilewatch.init(model="m", interval=200)
call = compilewatch.watch(lambda: None, name="forward")
for _ in range(10):
    call()
child = os.fork()
if child == 0:
    for _ in range(7):
        call()
    compilewatch.shutdown()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
for _ in range(5):
    call()
"""
INSIDE = """
import os, compilewatch
from tests.agent.short_calls import answer, sampled
compilewatch.init(model="m", interval=200)
call = compilewatch.watch(answer, name="forward")
SAMPLED
child = call(os.fork)
for _ in range(7 if child == 0 else 5):
    call()
if child == 0:
    compilewatch.shutdown()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
QUIET = FORK.replace("range(7)", "range(0)")
POOL = """
import multiprocessing, sys, compilewatch
call = compilewatch.watch(lambda: None, name="forward")
def work(n):
    compilewatch.init(model="m", interval=200)
    for _ in range(n):
        call()
def inherit(n):
    for _ in range(n):
        call()
if __name__ == "__main__":
    how = sys.argv[1]
    context = multiprocessing.get_context(how)
    work(10)
    children = [context.Process(target=work if how != "fork" else inherit, args=(7,)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0, 0]
"""


def by_instance(dashboard: Dashboard) -> dict[str, int]:
    counts: dict[str, int] = {}
    for (instance, _, _), report in dashboard.acked.items():
        calls = sum(region["calls"] for region in report.get("regions", []))
        counts[instance] = counts.get(instance, 0) + calls
    return counts


def test_a_forked_child_counts_its_own_calls_once(dashboard: Dashboard) -> None:
    done = run(FORK, ENDPOINT=dashboard.endpoint, API_KEY="k")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(by_instance(dashboard).values()) == [7, 15]
    pids = {request["instance"]["pid"] for request in dashboard.requests}
    assert len(pids) == 2


@pytest.mark.parametrize("sampled", [0, 1])
def test_a_call_in_which_a_process_forks_is_reported_once_by_the_parent(
    dashboard: Dashboard, sampled: int
) -> None:
    warming = ["call()", "sampled(call).issue_tokens(100)"][sampled]
    done = run(INSIDE.replace("SAMPLED", warming), ENDPOINT=dashboard.endpoint, API_KEY="k")
    assert (done.returncode, done.stderr) == (0, "")
    before = 2 * BURST if sampled else 1
    assert sorted(by_instance(dashboard).values()) == [7, before + 1 + 5]


def test_a_child_that_calls_nothing_reports_nothing(dashboard: Dashboard) -> None:
    done = run(QUIET, ENDPOINT=dashboard.endpoint, API_KEY="k")
    assert (done.returncode, done.stderr) == (0, "")
    assert list(by_instance(dashboard).values()) == [15]


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_flush_at_their_end(
    dashboard: Dashboard, tmp_path: Path, how: str
) -> None:
    program = tmp_path / "job.py"
    program.write_text(POOL)
    done = run(program, how, ENDPOINT=dashboard.endpoint, API_KEY="k")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(by_instance(dashboard).values()) == [7, 7, 7, 10]
