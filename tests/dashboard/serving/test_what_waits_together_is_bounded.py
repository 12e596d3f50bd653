"""Pending bodies, responses and requests share limits: above the limit, the oldest one is ended or
the new one is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from dashboard.ingest.body_decoder import RefusalError
from dashboard.serving import thread_lanes
from dashboard.serving.request_limits import ByteBudget
from dashboard.serving.thread_lanes import Lane, Lanes
from tests.flow.stack import wait_for


def test_the_oldest_transfer_makes_room() -> None:
    ended: list[str] = []
    budget = ByteBudget(100)

    def take(name: str, size: int) -> None:
        budget.take(name, size, lambda: ended.append(name))

    take("first", 60)
    take("second", 30)
    take("third", 30)
    assert (ended, budget.held) == (["first"], 60)
    budget.release("second")
    take("fourth", 70)
    assert (ended, budget.held) == (["first"], 100)


@pytest.fixture
def held() -> Callable[[Lane], threading.Event]:
    """Puts a job into a lane; the job ends when the event is set."""

    def hold(lane: Lane) -> threading.Event:
        begun, ends = threading.Event(), threading.Event()
        lane.put(lambda _: (begun.set(), ends.wait(30)))  # type: ignore[func-returns-value, arg-type, return-value]
        assert begun.wait(30)
        return ends

    return hold


def test_a_full_lane_refuses_and_the_other_lanes_continue(
    held: Callable[[Lane], threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_lanes, "LANE_THREADS", dict.fromkeys(thread_lanes.LANE_THREADS, 1))
    monkeypatch.setattr(thread_lanes, "MAX_WAITING_BYTES", 100)
    those = Lanes()
    ends = held(those.of("/accounts/login/"))
    those.of("/p/flow/").put(lambda _: None, 90)
    with pytest.raises(RefusalError, match="are queued") as refused:
        those.of("/p/flow/").put(lambda _: None, 20)
    assert refused.value.code == "busy"
    for path in ("/healthz", "/readyz", "/api/v1/reports"):
        answered = threading.Event()
        those.of(path).put(lambda _, answered=answered: answered.set())  # type: ignore[misc]
        assert answered.wait(30)
    ends.set()
    those.stop(5)


def test_a_job_that_waited_too_long_is_not_run(
    held: Callable[[Lane], threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_lanes, "MAX_WAIT_S", 0.0)
    lane, seen = Lane("pages", 1), list[bool]()
    ends = held(lane)
    lane.put(seen.append)
    ends.set()
    wait_for("the job was taken", lambda: seen, seconds=30)
    assert seen == [False]
