"""For any number of different events in one window, each event is counted and memory is bounded."""

from __future__ import annotations

import gc
import sys
import threading
from types import FunctionType, ModuleType
from typing import Any

from compilewatch.recording.aggregate import OVERFLOW_TEXT
from compilewatch.recording.recorder import Recorder
from compilewatch.sources.dynamo.scrubber import guard_group, guard_reason
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import MAX_COMPILES, MAX_FINDINGS, Compile, Report

MIB = 1 << 20
MILLION = 1_000_000


def opened() -> Recorder:
    recorder = Recorder()
    recorder.start()
    return recorder


def held(thing: Any) -> int:
    """The size in bytes of all reachable objects, without code."""
    seen: set[int] = set()
    waiting, size = [thing], 0
    while waiting:
        one = waiting.pop()
        if id(one) not in seen and not isinstance(one, (type, FunctionType, ModuleType)):
            seen.add(id(one))
            size += sys.getsizeof(one)
            waiting += gc.get_referents(one)
    return size


def total(report: Report) -> int:
    return sum(finding.count for finding in report.findings)


def test_a_million_different_guards_are_all_counted_in_bounded_memory() -> None:
    recorder = opened()
    tail = "x" * 480
    for number in range(MILLION):
        recorder.record_finding("guard", f"{number} {tail}", "model.py:7 in forward")
        if number % 99_991 == 0:
            assert held(recorder) < MIB
    report = recorder.rotate(1, 0.0, 1.0)
    assert total(report) == MILLION
    assert len(report.findings) <= MAX_FINDINGS
    assert report.findings[0].text == f"0 {tail}"
    assert (
        next(finding for finding in report.findings if finding.text == OVERFLOW_TEXT).count
        > MILLION - MAX_FINDINGS
    )
    assert recorder.truncated_event_count >= MILLION - MAX_FINDINGS
    assert len(dumps(report)) < MIB // 2


def test_absurdly_long_guards_are_cut_before_they_are_stored() -> None:
    recorder = opened()
    for number in range(1_000):
        text = f"{number} == L['" + "y" * 20_000
        recorder.record_finding("guard", guard_group(text))
        recorder.record_compile(
            Compile(1.0, f"0/{number}", "recompile", "ok", reason=guard_reason(text))
        )
    assert held(recorder) < 2 * MIB
    report = recorder.rotate(1, 0.0, 1.0)
    assert total(report) == 1_000
    assert len(report.compiles) == MAX_COMPILES


def test_counts_stay_exact_when_many_threads_record_at_once() -> None:
    recorder = opened()

    def find(thread: int) -> None:
        for number in range(5_000):
            recorder.record_finding("graph_break", f"{thread} {number % 300}")

    threads = [threading.Thread(target=find, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    closed = sum(total(recorder.rotate(seq, 0.0, 1.0)) for seq in range(1, 50))
    for thread in threads:
        thread.join(60)
    assert closed + total(recorder.rotate(50, 0.0, 1.0)) == 40_000
