"""The region of a call, and the lookups that torch made for the call, belong to the thread of the
call, even if other threads call in between."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import compilewatch
from compilewatch.agent import AGENT
from compilewatch.instrument import hotpath
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Report

Window = Callable[[], Report]
LIMIT = 60.0


def does(work: Callable[[], Any]) -> Any:
    """The job's function."""
    return work()


def looked_up() -> None:
    RECORDER.get_thread_state().hits += 1


def in_a_thread(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(LIMIT)
    assert not thread.is_alive()


def counts(report: Report) -> dict[tuple[str, bool], int]:
    return {(region.name, region.outermost): region.calls for region in report.regions}


def test_calls_that_alternate_between_threads_keep_their_own_regions(window: Window) -> None:
    outer, inner = compilewatch.watch(does, name="outer"), compilewatch.watch(does, name="inner")
    outer(lambda: inner(lambda: None))
    inner(lambda: None)
    window()

    def alternating() -> None:
        for _ in range(10):
            in_a_thread(lambda: inner(lambda: None))
            inner(lambda: None)

    outer(alternating)
    inner(lambda: None)
    assert counts(window()) == {("outer", True): 1, ("inner", True): 11, ("inner", False): 10}


def test_a_thread_that_reuses_the_id_of_an_ended_thread_gets_its_own_record(
    window: Window,
) -> None:
    call = compilewatch.watch(does, name="f")
    RECORDER.count_lookups(True)
    numbers = []
    for _ in range(20):
        in_a_thread(lambda: (numbers.append(threading.get_ident()), call(looked_up)))
        assert hotpath.own_thread.thread_id == 0
    RECORDER.count_lookups(False)
    [region] = window().regions
    assert (region.calls, region.sampled, region.compiled) == (20, 20, 20)
    assert len(set(numbers)) < len(numbers)


def test_lookups_of_alternating_threads_count_on_their_own_thread(window: Window) -> None:
    compiled, eager = (
        compilewatch.watch(does, name="compiled"),
        compilewatch.watch(does, name="eager"),
    )
    RECORDER.count_lookups(True)
    for _ in range(10):
        eager(lambda: in_a_thread(lambda: compiled(looked_up)))
    RECORDER.count_lookups(False)
    found = {region.name: (region.calls, region.compiled) for region in window().regions}
    assert found == {"compiled": (10, 10), "eager": (10, 0)}


def test_in_a_forked_child_no_thread_finds_the_record_of_a_missing_thread(
    window: Window,
) -> None:
    call = compilewatch.watch(does, name="f")
    begun, over = threading.Event(), threading.Event()
    elsewhere = threading.Thread(target=lambda: call(lambda: (begun.set(), over.wait(LIMIT))))
    elsewhere.start()
    assert begun.wait(LIMIT) and hotpath.own_thread.thread_id == elsewhere.ident
    child = os.fork()
    if child == 0:
        try:
            AGENT._after_fork()
            fresh = hotpath.own_thread is hotpath.NO_THREAD
            threading.Thread(target=lambda: call(lambda: None)).start()
            call(lambda: None)
            kept = hotpath.own_thread.buffer is None
            os._exit(0 if fresh and kept else 1)
        finally:
            os._exit(2)
    over.set()
    elsewhere.join(LIMIT)
    assert os.waitpid(child, 0)[1] == 0
