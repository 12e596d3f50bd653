"""GPU values are read on the agent's thread after the GPU has computed them; a fake CUDA clock
controls the progress of the GPU. The real GPU is in
`tests/gpu/test_compiling_pays_back_as_reported.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from compilewatch.errors import ComparisonError
from compilewatch.numerics.compare_outputs import MAX_VALUES as VALUES
from compilewatch.numerics.compare_outputs import Pair, compare_pairs, pair_outputs
from compilewatch.numerics.tolerance import Comparison
from compilewatch.recording.recorder import Recorder
from compilewatch.sources.cuda.deferred_reads import (
    DEFERRED_READS,
    MAX_WAITING,
    CallTimer,
    DeferredReads,
    gpu_of,
)
from compilewatch.sources.cuda.gpu_time import GpuTime


class Gpu:
    """A fake CUDA: events up to `reached` are done, and a graph is being captured or not."""

    def __init__(self) -> None:
        self.recorded, self.reached, self.capturing = 0, 0, False
        self.streams: list[Any] = []
        gpu = self

        class Event:
            def record(self, stream: Any) -> None:
                gpu.recorded += 1
                self.number = gpu.recorded

            def query(self) -> bool:
                return self.number <= gpu.reached

        self.Event = Event

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def current_stream(self, device: Any) -> str:
        return f"stream of {device}"

    def Stream(self, device: Any) -> str:
        return f"own stream of {device}"

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        self.streams.append(stream)
        yield


def asked(later: DeferredReads, gpu: Gpu, then: Callable[[], None]) -> None:
    later.add(SimpleNamespace(cuda=gpu), "cuda:0", then)


def room(later: DeferredReads, gpu: Gpu) -> bool:
    return later.has_room(SimpleNamespace(cuda=gpu))


def test_nothing_is_read_before_the_gpu_has_computed_it() -> None:
    later, gpu, read = DeferredReads(), Gpu(), list[str]()
    later.start()
    for name in ("first", "second"):
        asked(later, gpu, lambda name=name: read.append(name))  # type: ignore[misc]
    later.run_ready(gpu)
    assert read == []
    gpu.reached = 1
    later.run_ready(gpu)
    assert read == ["first"] and gpu.streams == ["own stream of cuda:0"]
    gpu.reached = 2
    later.run_ready(gpu)
    assert read == ["first", "second"]


def test_nothing_is_asked_while_a_graph_is_captured() -> None:
    later, gpu = DeferredReads(), Gpu()
    assert not room(later, gpu)  # the agent's thread has not yet announced that it reads
    later.start()
    assert room(later, gpu)
    gpu.capturing = True
    assert not room(later, gpu)


def test_a_gpu_that_is_far_behind_gets_no_further_reads() -> None:
    later, gpu = DeferredReads(), Gpu()
    later.start()
    for _ in range(MAX_WAITING):
        assert room(later, gpu)
        asked(later, gpu, lambda: None)
    assert not room(later, gpu)
    gpu.reached = 1
    later.run_ready(gpu)
    assert room(later, gpu)


def test_without_a_reader_the_reason_is_reported() -> None:
    later, gpu = DeferredReads(), Gpu()
    later.start()
    asked(later, gpu, lambda: None)
    later.stop("the CUDA runtime is not loaded as a shared library")
    with pytest.raises(
        ComparisonError,
        match="the GPU cannot be read without waiting for it: the CUDA runtime is not loaded",
    ):
        room(later, gpu)


def test_a_source_that_is_uninstalled_or_reinstalled_reads_nothing_from_before() -> None:
    source, gpu = GpuTime(), Gpu()
    DEFERRED_READS.start()
    asked(DEFERRED_READS, gpu, lambda: None)
    source.install(Recorder())
    assert not room(DEFERRED_READS, gpu)
    DEFERRED_READS.start()
    source.uninstall()
    assert not room(DEFERRED_READS, gpu)
    gpu.reached = 1
    DEFERRED_READS.run_ready(gpu)
    assert gpu.streams == []


def test_a_large_answer_is_held_in_part_and_an_odd_answer_as_its_comparison() -> None:
    eager = torch.arange(2.0 * VALUES + 2).reshape(2, -1)
    held = pair_outputs(torch, eager + 1.0, eager, on_gpu=True)
    assert isinstance(held, list) and VALUES // 2 < held[0].eager.numel() <= VALUES
    assert torch.equal(held[0].compiled, held[0].eager + 1.0)
    small = torch.ones(4)
    (copied,) = pair_outputs(torch, small, small, on_gpu=True)
    assert (
        isinstance(copied, Pair) and copied.compiled.data_ptr() != small.data_ptr()
    )  # a replay may overwrite the original
    found, share = compare_pairs(torch, [Pair("output", small * 1.5, small)])
    assert found.times > 1 and share == pytest.approx(0.5)
    assert isinstance(pair_outputs(torch, {"a": small}, small, on_gpu=True), Comparison)
    (other,) = pair_outputs(torch, torch.ones(3), small, on_gpu=True)
    assert "float32[3] compiled and float32[4] eager" in compare_pairs(torch, [other])[0].wrong


def test_on_the_cpu_the_host_is_the_clock() -> None:
    timed = CallTimer(torch, None)
    timed.stop()
    assert timed.seconds == timed.host_seconds > 0 and timed.gpu_seconds is None
    assert gpu_of([torch.ones(2)], "output is") is None
    with pytest.raises(ComparisonError, match="its output is on meta: reading would wait for it"):
        gpu_of([torch.ones(2, device="meta")], "output is")
