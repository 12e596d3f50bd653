"""A region that is called often enough for the agent to time only a sample of its calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from compilewatch.recording.call_sampling import Sampling
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Region, Report

Window = Callable[[], Report]
BURST = 10_000


def answer(x: Any = None) -> Any:
    """The job's function: calls its argument if that is possible."""
    return x() if callable(x) else x


def regions(report: Report, name: str) -> list[Region]:
    return [region for region in report.regions if region.name == name]


def second_passes() -> None:
    RECORDER.collect()
    RECORDER.sampler._last_adaptation = time.perf_counter() - 1.0
    RECORDER.adapt_rate()


def sampled(call: Callable[..., Any], *args: Any) -> Sampling:
    """The sampling state of a callable after two seconds of calls without a pause."""
    for _ in range(2):
        for _ in range(BURST):
            call(*args)
        second_passes()
    [sampling] = {
        line.sampling for line in RECORDER._all_buffers if line.sampling.calls_per_timed > 1
    }
    assert sampling.calls_per_timed > 10
    return sampling


def held_up(call: Callable[..., Any]) -> Callable[[], None]:
    """Starts a call of `answer` in another thread; returns a function that ends the call."""
    begun, over = threading.Event(), threading.Event()

    def waits() -> None:
        begun.set()
        over.wait(60)

    def end() -> None:
        over.set()
        thread.join()

    thread = threading.Thread(target=call, args=(waits,))
    thread.start()
    begun.wait(60)
    return end
