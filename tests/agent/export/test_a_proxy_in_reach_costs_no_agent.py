"""The search for objects that a callable reaches asks no object for its class: proxies such as
Flask's raise outside a request."""

from __future__ import annotations

from typing import Any

import pytest
from compilewatch.recording.compile_requests import (
    MIN_UNCOMPILED_CALLS,
    WHY_DROPPED,
    CompileRequests,
)
from compilewatch.recording.region_spec import RegionSpec
from compilewatch.recording.runtime_names import EAGER
from compilewatch.recording.series_buffer import SeriesBuffer
from compilewatch.sources.dynamo.cache_entries import _is_new_tensor
from compilewatch.wire.messages import Region


class Proxy:
    @property
    def __class__(self) -> Any:
        raise RuntimeError("working outside of request context")

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


class Slotted:
    __slots__ = ()

    def __call__(self) -> None: ...


class Failing(type):
    def __getattr__(cls, name: str) -> Any:
        raise RuntimeError(name)


class Refuses(metaclass=Failing): ...


def dropped() -> None: ...


request, refuses = Proxy(), Refuses()


def view() -> Any:
    return request, dropped()


def refused() -> Any:
    return refuses.answer


def requests_for(called: Any) -> tuple[CompileRequests, list[tuple[SeriesBuffer, Region | None]]]:
    requests, region = CompileRequests(), Region("view", MIN_UNCOMPILED_CALLS, runtime=EAGER)
    requests.add(dropped, "app.py:3 in load")
    return requests, [(SeriesBuffer(RegionSpec("view", target=lambda: called), region), region)]


def test_a_proxy_is_skipped() -> None:
    requests, closed = requests_for(view)
    assert [(one.why, one.where) for one in requests.find_uncompiled(closed)] == [
        (WHY_DROPPED, "app.py:3 in load")
    ]


def test_the_answer_at_a_break_is_checked_by_its_type_alone() -> None:
    assert not _is_new_tensor(request, []) and not _is_new_tensor([request], [])


def test_an_object_that_fails_when_inspected_fails_once() -> None:
    requests, closed = requests_for(refused)
    with pytest.raises(RuntimeError):
        requests.find_uncompiled(closed)
    assert requests.find_uncompiled(closed) == []


def test_an_object_without_weak_references_is_no_request() -> None:
    requests, closed = requests_for(view)
    requests.add(Slotted(), "app.py:4 in load")
    assert len(requests.find_uncompiled(closed)) == 1
