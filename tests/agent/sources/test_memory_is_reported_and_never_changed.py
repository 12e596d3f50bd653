"""Host memory, compile workers, and the number of times a GPU ran out of memory, as torch counts
them: read, and never changed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from compilewatch.recording.recorder import Recorder
from compilewatch.sources.host.memory import Memory, Shortages
from compilewatch.sources.host.rss import rss_bytes, workers_rss_bytes
from torch._inductor.compile_worker.subproc_pool import SubprocPool

MIB = 1 << 20


@pytest.fixture
def recorder() -> Recorder:
    recorder = Recorder()
    recorder.start()
    return recorder


@pytest.fixture
def loader() -> Iterator[subprocess.Popen[str]]:
    """A child that is no compile worker, such as a data loader's."""
    program = "block = bytearray(64 << 20); print(1, flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdout.readline() == "1\n"
    yield child
    child.communicate("\n")


def test_the_size_of_this_process_is_the_kernels(recorder: Recorder) -> None:
    memory = Memory()
    assert memory.install(recorder) == ("partly", "the host only: the job has not started CUDA")
    memory.poll(recorder)
    gauges = recorder.rotate(1, 0.0, 1.0).gauges
    assert (
        gauges.host_rss is not None and abs(gauges.host_rss - (rss_bytes("self") or 0)) < 64 * MIB
    )
    assert gauges.devices == [] and gauges.host_rss_slope is None


def test_compile_workers_count_and_other_children_do_not(loader: subprocess.Popen[str]) -> None:
    assert (rss_bytes(loader.pid) or 0) > 64 * MIB
    before = workers_rss_bytes()
    pool = SubprocPool(1)
    try:
        pool.submit(int, "1").result(60)
        during = workers_rss_bytes()
    finally:
        pool.shutdown()
    assert before == 0
    assert during is not None and during > 8 * MIB


def test_a_process_that_ended_has_no_memory() -> None:
    assert rss_bytes(2**22 + 1) is None


def test_running_out_of_memory_is_reported_once(recorder: Recorder) -> None:
    shortages = Shortages()
    for counts in ((0, 0), (2, 1), (2, 1), (3, 5)):
        shortages.report(recorder, 1, {"num_ooms": counts[0], "num_alloc_retries": counts[1]})
    report = recorder.rotate(1, 0.0, 1.0)
    assert [(fact.kind, fact.data["device"], fact.data["count"]) for fact in report.facts] == [
        ("oom", 1, 2),
        ("oom", 1, 1),
    ]
    (retries,) = report.findings
    assert (retries.kind, retries.count) == ("alloc_retry", 5)
    assert retries.text == "GPU 1 was full: the allocator gave its cache back and tried again"


def test_a_job_that_resets_its_statistics_loses_and_doubles_nothing(recorder: Recorder) -> None:
    shortages = Shortages()
    for ooms in (4, 0, 1, 1):
        shortages.report(recorder, 0, {"num_ooms": ooms, "num_alloc_retries": 0})
    assert [fact.data["count"] for fact in recorder.rotate(1, 0.0, 1.0).facts] == [4, 1]


def test_a_torch_that_does_not_count_them_costs_nothing(recorder: Recorder) -> None:
    Shortages().report(recorder, 0, {})
    assert recorder.rotate(1, 0.0, 1.0).facts == []
