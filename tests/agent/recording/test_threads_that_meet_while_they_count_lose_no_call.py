"""For every thread that is delayed between two steps of counting, each call is counted once, and a
call that compiles or waits is reported."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import compilewatch
import pytest
from compilewatch.recording import sampler as module
from compilewatch.recording.call_sampling import Sampling
from compilewatch.recording.recorder import RECORDER

from tests.agent.short_calls import BURST, Window, answer, held_up, sampled, second_passes


def in_another_thread(job: Any) -> None:
    thread = threading.Thread(target=job)
    thread.start()
    thread.join()


def test_two_threads_hand_out_tickets_at_once(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = compilewatch.watch(answer, name="f")
    sampling = sampled(call)
    window()
    hand_out = sampling.publish_tokens

    def preempted(given: Iterator[Sampling]) -> None:
        sampling.publish_tokens = hand_out
        in_another_thread(lambda: sampling.issue_tokens(5))
        hand_out(given)

    sampling.publish_tokens = preempted
    sampling.issue_tokens(100)
    told = 0
    for _ in range(3):
        for _ in range(10):
            call()
        told += sum(region.calls for region in window().regions)
    assert told + sum(region.calls for region in window().regions) == 30


def test_no_tokens_are_issued_if_something_compiles_during_the_decision(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = compilewatch.watch(answer, name="f")
    for _ in range(BURST):
        call()
    second_passes()
    for _ in range(BURST):
        call()
    alike, handed_out = module._has_uniform_nesting, []

    def compiles_meanwhile(*args: Any) -> bool:
        in_another_thread(lambda: RECORDER.on_compile_start("g"))
        return alike(*args)

    monkeypatch.setattr(module, "_has_uniform_nesting", compiles_meanwhile)
    monkeypatch.setattr(Sampling, "issue_tokens", lambda *args: handed_out.append(args))
    second_passes()
    assert handed_out == [] and {
        line.sampling.calls_per_timed for line in RECORDER._all_buffers
    } == {1}


def test_sampling_ends_under_a_counted_call_that_then_compiles(window: Window) -> None:
    def compiles_later() -> None:
        in_another_thread(lambda: call())
        second_passes()  # so few calls that each call is timed from now on
        assert sampling.calls_per_timed == 1
        RECORDER.on_compile_start("f")
        time.sleep(0.05)
        RECORDER.on_compile_stop()

    call = compilewatch.watch(answer, name="f")
    sampling = sampled(call)
    window()
    sampling.issue_tokens(100)
    call(compiles_later)
    [region] = window().regions
    assert region.warmup is not None and (region.calls, region.warmup.count) == (2, 1)


def test_two_compilations_begin_at_once_while_a_counted_call_waits(window: Window) -> None:
    call = compilewatch.watch(answer, name="f")
    sampling = sampled(call)
    window()
    sampling.issue_tokens(100)
    end_call = held_up(call)
    sampler = RECORDER.sampler
    stop = sampler.stop

    def compiles() -> None:
        RECORDER.on_compile_start("h")
        started.set()
        ended.wait(60)
        RECORDER.on_compile_stop()

    def preempted() -> None:
        sampler.stop = stop  # type: ignore[method-assign]
        other.start()
        started.wait(60)
        stop()

    started, ended, other = threading.Event(), threading.Event(), threading.Thread(target=compiles)
    sampler.stop = preempted  # type: ignore[method-assign]
    RECORDER.on_compile_start("g")
    RECORDER.on_compile_stop()
    end_call()
    counts = [region.calls for _ in range(3) for region in window().regions]
    ended.set()
    other.join()
    assert counts == [1]
