"""A wrong value that a job passes to the agent is dropped and counted: the call continues, and the
window can still be sent."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import compilewatch
import pytest
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.codec import dumps, loads
from compilewatch.wire.messages import Report

Window = Callable[[], Report]


@pytest.mark.parametrize("items", [math.nan, math.inf, -1, 1e300, "many", object()])
def test_items_that_are_not_a_number_are_dropped(window: Window, items: Any) -> None:
    before = RECORDER.internal_error_count
    assert compilewatch.watch(lambda: 5, name="call", items=lambda: items)() == 5
    with compilewatch.region("block", items=items):
        pass
    report = loads(Report, dumps(window()))
    assert [(region.name, region.calls, region.items) for region in report.regions] == [
        ("call", 1, None),
        ("block", 1, None),
    ]
    assert RECORDER.internal_error_count == before
    assert [fact.data["name"] for fact in report.facts] == [
        "items() of call failed",
        "items() of block failed",
    ]


def test_names_and_modes_that_are_not_text_are_dropped(window: Window) -> None:
    numbers: Any = 5
    assert compilewatch.watch(len, name=numbers, mode=numbers, runtime=numbers)("ab") == 2
    [region] = loads(Report, dumps(window())).regions
    assert (region.name, region.mode, region.runtime) == ("5", "5", "5")


def test_a_tensor_that_fails_to_give_its_size_has_no_bucket(window: Window) -> None:
    class Traced:
        def numel(self) -> object:
            return object()

    before = RECORDER.internal_error_count
    call = compilewatch.watch(id, name="traced")
    for _ in range(50):
        call(Traced())
    [region] = window().regions
    assert (region.calls, region.bucket) == (50, "")
    assert RECORDER.internal_error_count == before


def test_a_mark_may_have_its_own_name(window: Window) -> None:
    compilewatch.mark("weights", step=3, name="v3")
    [fact] = window().facts
    assert fact.data == {"name": "weights", "step": 3}


def test_a_static_method_is_watched_above_and_below_its_decorator(window: Window) -> None:
    class Model:
        @compilewatch.watch
        @staticmethod
        def above(x: int) -> int:
            return x

        @staticmethod
        @compilewatch.watch
        def below(x: int) -> int:
            return x

    assert [Model().above(1), Model.above(2), Model().below(3), Model.below(4)] == [1, 2, 3, 4]
    assert {region.name: region.calls for region in window().regions} == {"above": 2, "below": 2}
