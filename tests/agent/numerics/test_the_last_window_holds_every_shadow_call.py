"""Totals of shadow calls and of answers searched for NaN are complete in the last window of a
process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.numerics import live_results, nan_check
from compilewatch.numerics import shadow_calls as shadowing
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Report
from compilewatch.wire.numerics import Parity, parity_of


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    monkeypatch.setattr(live_results, "_names", set())
    monkeypatch.setattr(nan_check, "SAMPLE_INTERVAL", 1)
    monkeypatch.setattr(shadowing, "_off", [])


def parities(report: Report) -> list[Parity]:
    return [parity_of(fact.data) for fact in report.facts if fact.kind == "parity"]


def test_eighteen_shadow_calls_are_eighteen(window: Callable[[], Report]) -> None:
    scale = compilewatch.shadow(torch.compile(lambda x: x * 2.0, backend="aot_eager"), rate=1.0)
    for _ in range(18):
        scale(torch.ones(4))
    assert parities(window())[-1].samples == 18
    scale(torch.ones(4))
    assert [one.samples for one in parities(window())] == [19]
    assert parities(window()) == [], "nothing was added"


def test_answers_with_nan_are_all_counted(window: Callable[[], Report]) -> None:
    def divide(x: Any) -> Any:
        return x / 0.0

    watched = compilewatch.watch(divide, finite=True)
    for _ in range(7):
        watched(torch.zeros(4))
    (*_, last) = parities(window())
    assert (last.kind, last.samples, last.beyond) == ("finite", 7, 7)


def test_totals_that_fail_to_report_cost_no_window(window: Callable[[], Report]) -> None:
    def fail() -> None:
        raise RuntimeError("no totals")

    before = RECORDER.internal_error_count
    RECORDER.report_at_rotation("shadow calls of step", fail)
    assert window().regions == []
    assert RECORDER.internal_error_count == before + 1
