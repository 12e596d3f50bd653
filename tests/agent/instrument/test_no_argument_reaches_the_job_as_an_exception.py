"""For any argument that a job passes to the agent, from any place, nothing is raised into the job
and every call returns its own result.

`COMPILEWATCH_TEST_FUZZ` sets the number of calls to try: 10,000 by default."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import compilewatch
import pytest
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.codec import dumps, loads
from compilewatch.wire.messages import Report
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.faults.results import AddResult
from tests.faults.size import sized

Window = Callable[[], Report]
CALLS = int(os.environ.get("COMPILEWATCH_TEST_FUZZ", "10000"))
EXAMPLES, ROUNDS = 200, 6
REPEAT = max(1, CALLS // (EXAMPLES * ROUNDS))


class Hostile:
    """Fails at every operation."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __float__ = __bool__ = __len__ = __hash__ = __eq__ = __str__  # type: ignore[assignment]


PLAIN: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.text(),
    st.sampled_from(["\x00", "\ud800", "a\x00b\udfff", "\U0001f600" * 600, b"\xff"]),
    st.integers(),
    st.floats(),
    st.binary(),
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(st.integers() | st.text(), st.lists, max_leaves=5),
        max_size=3,
    ),
)
ODD: st.SearchStrategy[Callable[[], Any]] = st.one_of(
    PLAIN.map(lambda value: lambda: value),
    st.text().map(lambda text: lambda: text * 10_000),
    st.sampled_from([Hostile, object, lambda: 10**5000, lambda: -(10**400)]),
)
"""Factories of values: a value that fails at every operation must not meet the tool that draws
it."""


@pytest.fixture(scope="module", autouse=True)
def recording() -> Iterator[None]:
    RECORDER.is_disabled = False
    RECORDER.start()
    yield
    RECORDER.stop()


def echo(*args: object, **kwargs: object) -> object:
    """The job's function."""
    return args, kwargs


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=ODD, value=ODD, other=ODD)
def test_odd_arguments(name: Any, value: Any, other: Any) -> None:
    name, value, other = name(), value(), other()

    def answer(*args: object, **kwargs: object) -> Any:
        return value

    plain = compilewatch.watch(echo, name=name, mode=value, runtime=other)
    rich = compilewatch.watch(echo, name=name, items=answer, bucket=answer)
    for _ in range(REPEAT):
        for call in (plain, rich):
            args, kwargs = call(value, other, key=name)  # type: ignore[misc]
            assert args[0] is value and args[1] is other and kwargs["key"] is name
            call()
            with compilewatch.region(name, items=value):
                pass
        compilewatch.mark(name, value=value, other=other)
    compilewatch.watch(value)
    compilewatch.ready()
    loads(Report, dumps(RECORDER.rotate(1, 0.0, 1.0)))
    assert RECORDER.buffers is not None, RECORDER.last_error
    assert RECORDER.internal_error_count == 0, RECORDER.last_error


class Finalized:
    """Calls the agent when it is collected."""

    def __init__(self, call: Callable[..., object]) -> None:
        self.call = call
        self.me = self

    def __del__(self) -> None:
        self.call(1)
        with compilewatch.region("in del"):
            compilewatch.mark("in del")


class Handler(logging.Handler):
    """Calls the agent when something is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        compilewatch.watch(echo, name="in handler")(record)
        compilewatch.mark("in handler")


def test_finalizers_signals_and_logging_handlers_may_call_the_agent_at_any_moment(
    add_result: AddResult,
) -> None:
    RECORDER.start()
    call = compilewatch.watch(echo, name="everywhere")
    counted = [0]

    def signalled(*args: object) -> None:
        call("signal")
        counted[0] += 1

    log, handler = logging.getLogger("compilewatch.tests"), Handler()
    log.addHandler(handler)
    before, old = gc.get_threshold(), signal.signal(signal.SIGALRM, signalled)
    gc.set_threshold(1)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    over, until, rounds = threading.Event(), time.monotonic() + sized(0, 600), 0
    draining = threading.Thread(
        target=lambda: [RECORDER.collect() for _ in iter(lambda: over.wait(0.0005), True)]
    )
    draining.start()
    try:
        while rounds < CALLS // 10 or time.monotonic() < until:
            Finalized(call)
            call(rounds)
            log.error("x")
            rounds += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        gc.set_threshold(*before)
        log.removeHandler(handler)
        over.set()
    gc.collect()
    draining.join(60)
    assert not draining.is_alive() and RECORDER.internal_error_count == 0, RECORDER.last_error
    found: dict[str, int] = {}
    for region in RECORDER.rotate(1, 0.0, 1.0).regions:
        found[region.name] = found.get(region.name, 0) + region.calls
    add_result("9", runs=1, rounds=rounds, signals=counted[0])
    assert found == {"everywhere": 2 * rounds + counted[0], "in del": rounds, "in handler": rounds}


def test_a_fault_in_any_part_of_the_path_stays_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*args: object, **kwargs: object) -> Any:
        raise MemoryError

    call = compilewatch.watch(echo, name="faults")
    for part in (
        "add_buffer",
        "_create_buffer",
        "_find_or_create",
        "shorten_if_long",
        "choose_list",
        "record_fact",
        "get_thread_state",
    ):
        RECORDER.start()
        RECORDER.next_check_at = 0.0
        with monkeypatch.context() as patch:
            patch.setattr(type(RECORDER), part, exhausted)
            for _ in range(3):
                assert call(part) == ((part,), {})
                with compilewatch.region("block"):
                    pass
                compilewatch.mark("m")
                compilewatch.ready()
        assert RECORDER.buffers is not None
    RECORDER.start()
