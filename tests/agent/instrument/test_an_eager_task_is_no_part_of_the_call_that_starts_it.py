"""A task whose first step runs inside the step of another task, as eager tasks of Python 3.12 do,
keeps its guard lookups separate."""

from __future__ import annotations

import subprocess

import pytest

from tests.agent.pythons import AGENT, PYTHONS

EAGER_TASKS = """
import asyncio, os, sys
import compilewatch
from compilewatch.recording.recorder import RECORDER
RECORDER.start()
RECORDER.count_lookups(True)

def looked_up(hit):
    call = RECORDER.get_thread_state()
    if hit: call.hits += 1
    else: call.misses += 1

@compilewatch.watch(name="inner")
async def inner():
    looked_up(False)
    await asyncio.sleep(0)
    looked_up(True)

@compilewatch.watch(name="outer")
async def outer():
    looked_up(True)
    task = asyncio.create_task(inner())
    looked_up(True)
    await task

async def main():
    # They came with Python 3.12.
    asyncio.get_running_loop().set_task_factory(getattr(asyncio, "eager_task_factory", None))
    await asyncio.gather(outer(), outer())

asyncio.run(main())
print(sorted((r.name, r.compiled, r.partial, r.unknown) for r in RECORDER.rotate(1, 0.0, 1.0).regions))
"""


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
def test_an_eager_task_that_starts_inside_a_call_is_not_part_of_it(python: str) -> None:
    done = subprocess.run(
        [python, "-c", EAGER_TASKS],
        env={"PYTHONPATH": str(AGENT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "[('inner', 0, 2, 0), ('outer', 2, 0, 0)]", done.stderr
