"""The job's own `bucket` and `items` callables: if one fails, its calls still count, the failure is
logged, and the callable is disabled after twenty failures."""

from __future__ import annotations

from collections.abc import Callable

import compilewatch
import pytest
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Report

Window = Callable[[], Report]


class Unspeakable(Exception):
    """Fails even when it is printed."""

    def __str__(self) -> str:
        raise Unspeakable

    __repr__ = __str__


@pytest.mark.parametrize("error", [ValueError("secret text"), Unspeakable()])
def test_a_failing_callable_is_disabled_and_every_call_counts(
    window: Window, error: Exception
) -> None:
    asked: list[object] = []

    def fails(x: object) -> float:
        asked.append(x)
        raise error

    call = compilewatch.watch(abs, name="failing", bucket=fails, items=fails)
    assert [call(-x) for x in range(100)] == list(range(100))
    report = window()
    assert {
        (region.bucket, region.calls, region.errors, region.items) for region in report.regions
    } == {
        ("other", 20, 0, None),
        ("", 80, 0, None),
    }
    assert len(asked) == 40
    assert [fact.data for fact in report.facts] == [
        {"name": f"{option}() of failing {what}", "reason": type(error).__name__}
        for what in ("failed", "failed 20 times and is disabled")
        for option in ("bucket", "items")
    ]
    assert (RECORDER.internal_error_count, RECORDER.buffers is not None) == (0, True)


def test_a_callable_that_fails_sometimes_counts_its_successes(window: Window) -> None:
    call = compilewatch.watch(abs, name="failing", items=lambda x: 10 / x)
    for x in (0, 1, 2):
        call(x)
    [region] = window().regions
    assert (region.calls, region.items) == (3, 15.0)


def test_another_region_with_the_same_callable_is_not_affected(window: Window) -> None:
    def odd(x: int) -> float:
        return 1 // x

    failing, well = (
        compilewatch.watch(abs, name="failing", items=odd),
        compilewatch.watch(abs, name="well", items=odd),
    )
    for _ in range(30):
        failing(0)
        well(1)
    assert {region.name: region.items for region in window().regions} == {
        "failing": None,
        "well": 30.0,
    }


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_inside_a_callable_reaches_the_job(
    window: Window, interrupt: type[BaseException]
) -> None:
    def interrupted(x: int) -> float:
        raise interrupt

    for options in ({"bucket": interrupted}, {"items": interrupted}):
        with pytest.raises(interrupt):
            compilewatch.watch(abs, name="failing", **options)(1)  # type: ignore[call-overload]
    compilewatch.watch(abs, name="after")(1)
    assert [region.outermost for region in window().regions if region.name == "after"] == [True]


def test_endless_buckets_stay_sixteen_and_cost_no_memory(window: Window) -> None:
    call = compilewatch.watch(abs, name="failing", bucket=str)
    for x in range(20_000):
        call(x)
    assert RECORDER.buffers is not None and len(RECORDER.buffers) == 17
    found = {region.bucket: region.calls for region in window().regions}
    assert (len(found), found["other"], sum(found.values())) == (17, 19_984, 20_000)
