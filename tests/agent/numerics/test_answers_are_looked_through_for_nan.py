"""`watch(finite=True)` searches a sample of the answers for NaN and infinite values; without the
option no answer is searched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.numerics import live_results, nan_check
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Report
from compilewatch.wire.numerics import Parity, parity_of, parity_words
from torch import Tensor, nn

from tests.agent.conftest import KEY
from tests.agent.programs import run
from tests.agent.server import Dashboard

Window = Callable[[], Report]


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nan_check, "SAMPLE_INTERVAL", 1)
    monkeypatch.setattr(live_results, "REPORT_INTERVAL_S", 0.0)
    monkeypatch.setattr(live_results, "_names", set())
    monkeypatch.setattr(RECORDER.specs, "check_nan", False)


def reported_by(report: Report) -> list[Parity]:
    return [parity_of(fact.data) for fact in report.facts if fact.kind == "parity"]


def half(x: Tensor) -> dict[str, Tensor]:
    return {"logits": x / x, "ids": x.long()}


def test_values_are_counted_by_region_and_the_answer_is_not_changed(window: Window) -> None:
    call = compilewatch.watch(half, name="forward", finite=True)
    for batch in (torch.ones(8), torch.zeros(8), torch.tensor([0.0, 1.0])):
        assert torch.equal(call(batch)["logits"], batch / batch) or batch.min() == 0
    found = reported_by(window())
    assert [
        (one.kind, one.region, one.state, one.samples, one.beyond, one.nonfinite) for one in found
    ] == [
        ("finite", "forward", "passed", 1, 0, 0),
        ("finite", "forward", "failed", 2, 1, 8),
        ("finite", "forward", "failed", 3, 2, 9),
    ]
    assert (
        parity_words(found[-1])
        == "output['logits'] holds NaN or infinite values in 2 of 3 sampled calls"
    )


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64]
)
def test_one_value_among_many_is_found_in_every_precision(
    window: Window, value: float, dtype: torch.dtype
) -> None:
    batch = torch.full((100, 100), 60000.0 if dtype == torch.float16 else 1.0, dtype=dtype)
    call = compilewatch.watch(lambda x: x.clone(), name="forward", finite=True)
    call(batch)  # a sum that is infinite although no value is
    batch[3, 4] = value
    call(batch)
    assert [(one.state, one.nonfinite) for one in reported_by(window())] == [
        ("passed", 0),
        ("failed", 1),
    ]


def test_a_compiled_module_is_sampled_and_stays_a_module(window: Window) -> None:
    torch._dynamo.reset()
    module = nn.Linear(4, 4)
    model = compilewatch.watch(torch.compile(module, backend="eager"), finite=True)
    assert isinstance(model, nn.Module)
    model(torch.ones(2, 4))
    model(torch.full((2, 4), float("nan")))
    report = window()
    assert [one.state for one in reported_by(report)] == ["passed", "failed"]
    assert report.regions[0].calls == 2


def test_the_search_is_off_by_default(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    compilewatch.watch(half, name="plain")(torch.zeros(2))
    assert reported_by(window()) == []
    monkeypatch.setattr(RECORDER.specs, "check_nan", True)
    compilewatch.watch(half, name="asked")(torch.zeros(2))
    compilewatch.watch(half, name="not this one", finite=False)(torch.zeros(2))
    assert [one.region for one in reported_by(window())] == ["asked"]


@pytest.mark.parametrize("order", ["before", "after"])
def test_the_setting_counts_before_and_after_init(dashboard: Dashboard, order: str) -> None:
    program = """
import sys, torch, compilewatch
from compilewatch.numerics import nan_check as finite
finite.SAMPLE_INTERVAL = 1
before = sys.argv[1:] == ["before"]
call = compilewatch.watch(lambda x: x / x, name="forward") if before else None
compilewatch.init(model="m", interval=0.05)
call = call or compilewatch.watch(lambda x: x / x, name="forward")
call(torch.zeros(4))
"""
    done = run(
        program.replace('sys.argv[1:] == ["before"]', str(order == "before")),
        ENDPOINT=dashboard.endpoint,
        API_KEY=KEY,
        FINITE="1",
    )
    assert done.returncode == 0, done.stderr
    facts = [
        fact
        for request in dashboard.requests
        for report in request["reports"]
        for fact in report.get("facts", ())
    ]
    assert [
        (one.state, one.nonfinite)
        for one in (parity_of(fact["data"]) for fact in facts if fact["kind"] == "parity")
    ] == [("failed", 4)]


def test_about_one_call_in_a_hundred_is_sampled(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nan_check, "SAMPLE_INTERVAL", 100)
    call = compilewatch.watch(half, name="forward", finite=True)
    for _ in range(5000):
        call(torch.ones(2))
    assert 30 <= reported_by(window())[-1].samples <= 80


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (3, "it returns no tensor of floating-point numbers"),
        (torch.ones(2, dtype=torch.int64), "it returns no tensor of floating-point numbers"),
        (torch.ones(2, device="meta"), "its output is on meta: reading would wait for it"),
    ],
)
def test_an_answer_that_cannot_be_searched_reports_the_reason(
    window: Window, answer: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = compilewatch.watch(lambda: answer, name="forward", finite=True)
    for _ in range(3):
        assert call() is answer
    (found,) = reported_by(window())
    assert (found.state, found.why, found.samples) == ("not compared", why, 0)
    monkeypatch.setattr(RECORDER.specs, "check_nan", True)
    compilewatch.watch(lambda: answer, name="another")()
    assert reported_by(window()) == [] and RECORDER.internal_error_count == 0


def test_calls_that_fail_or_are_suspended_are_not_changed(window: Window) -> None:
    def fails() -> None:
        raise KeyError("k")

    async def later() -> int:
        return 3

    with pytest.raises(KeyError):
        compilewatch.watch(fails, finite=True)()
    coroutine = compilewatch.watch(later, finite=True)()
    with pytest.raises(StopIteration):
        coroutine.send(None)
    assert reported_by(window()) == []
