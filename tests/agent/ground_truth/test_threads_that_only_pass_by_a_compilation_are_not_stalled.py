"""Threads that wait together for the first compilation all warm up. Later the compiling thread is
stalled; a thread that is served meanwhile is not, even if its call is in progress when a
compilation begins or ends."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.agent.ground_truth.running import read_recorded
from tests.agent.programs import run

JOB = """
import json, threading, time
import torch, compilewatch

compilewatch.init(model="m", version="1")
THREADS, SIZES = 4, range(10, 16)
together = threading.Barrier(THREADS)
served, compiling, over = [], threading.Event(), threading.Event()

def slow(graph, inputs):
    "Compiles until the other thread was served twice, so that no call of that thread lasts for the whole compilation."
    before = len(served)
    compiling.set()
    while later.is_alive() and len(served) < before + 2:
        time.sleep(0.001)
    return graph.forward

def fast(graph, inputs):
    return graph.forward

first = torch.compile(lambda x: x * 2, backend=fast, dynamic=False)
second = torch.compile(lambda x: x * 3, backend=slow, dynamic=False)
later = threading.Thread()

@compilewatch.watch(name="waits")
def waits():
    together.wait(60)
    first(torch.ones(3))
    together.wait(60)

@compilewatch.watch(name="works")
def works(size):
    second(torch.ones(size))
    time.sleep(0.002)

def others():
    while not over.is_set():
        works(3)
        served.append(1)

threads = [threading.Thread(target=waits) for _ in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
works(3)
works(3)
later = threading.Thread(target=others)
later.start()
for size in SIZES:
    works(size)
over.set()
later.join()
compilewatch.shutdown()
print(json.dumps(len(served) + 2 + len(SIZES)))
"""


def test_only_the_thread_that_compiles_is_stalled(tmp_path: Path) -> None:
    recording = tmp_path / "told.jsonl"
    done = run(JOB, ENDPOINT=f"file:{recording}", SPOOL="off")
    assert done.returncode == 0, done.stderr[-2000:]
    [recorded] = read_recorded(recording)
    found: Counter[tuple[str, str]] = Counter()
    for region in (region for report in recorded.reports for region in report.regions):
        for kind in ("warmup", "stalled", "latency"):
            sketch = getattr(region, kind)
            found[region.name, kind] += sketch.count if sketch else 0
    calls = json.loads(done.stdout)
    assert +found == Counter(
        {
            ("waits", "warmup"): 4,
            ("works", "warmup"): 1,
            ("works", "stalled"): 6,
            ("works", "latency"): calls - 7,
        }
    )
