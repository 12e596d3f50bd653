"""`eager_baseline` reports the time of uncompiled calls, not as traffic, and does not change the
job; `baseline` is its old name."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.numerics import eager_timing as measuring
from compilewatch.numerics.eager_timing import EagerBaseline
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Region, Report
from torch import Tensor, nn

from tests.agent.golden_models import Convolution, Perceptron

Window = Callable[[], Report]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()


def watched(module: nn.Module, **told: Any) -> Any:
    return compilewatch.watch(torch.compile(module, backend="eager"), name="forward", **told)


def regions(report: Report) -> dict[tuple[str, str, bool], Region]:
    return {(one.name, one.runtime, one.outermost): one for one in report.regions}


def test_eager_calls_are_reported_next_to_those_of_the_region_and_are_no_traffic(
    window: Window,
) -> None:
    model, batch = watched(Perceptron()), torch.randn(4, 48)
    found = compilewatch.eager_baseline(model, batch, calls=30)
    for _ in range(5):
        model(batch)
    told = regions(window())
    assert told.keys() == {("forward", "eager", False), ("forward", "torch.compile", True)}
    eager, traffic = told["forward", "eager", False], told["forward", "torch.compile", True]
    assert (eager.calls, traffic.calls, found.calls) == (30, 5, 30)
    assert eager.bucket == traffic.bucket
    assert eager.compiled == 0
    assert found.text == f"30 eager calls, {1000 * found.seconds:.3g} ms on average"


def test_the_mean_is_that_of_the_calls(window: Window) -> None:
    class Slow(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            torch._dynamo.graph_break()
            time.sleep(0.002)
            return x + 1

    found = compilewatch.eager_baseline(watched(Slow()), (torch.ones(2),), calls=20)
    (eager,) = window().regions
    assert found.seconds >= 0.002
    assert eager.latency is not None
    assert eager.latency.sum == pytest.approx(
        found.calls * found.seconds, rel=0.3
    )  # two clocks, on a machine with other work


def test_a_callable_compiled_in_place_runs_eager_for_the_measurement_and_compiled_afterwards(
    window: Window,
) -> None:
    module = Perceptron()
    module.compile(backend="eager")
    model = compilewatch.watch(module, name="forward")
    found = compilewatch.eager_baseline(model, {"x": torch.randn(4, 48)}, calls=20)
    assert found.calls == 20
    assert module._compiled_call_impl is not None


def test_the_state_of_the_job_is_restored(window: Window) -> None:
    module = Convolution().train()
    before = {name: one.clone() for name, one in module.state_dict().items()}
    batch = torch.randn(2, 3, 12, 12)
    given, drawn = batch.clone(), torch.get_rng_state()
    compilewatch.eager_baseline(watched(module), batch, calls=20)
    assert all(torch.equal(one, before[name]) for name, one in module.state_dict().items())
    assert (
        module.training and torch.equal(batch, given) and torch.equal(torch.get_rng_state(), drawn)
    )
    assert RECORDER.get_thread_state().buffer is None


def test_the_measurement_of_a_slow_model_ends_after_its_limit(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "MAX_SECONDS", 0.0)
    assert compilewatch.eager_baseline(watched(Perceptron()), torch.randn(4, 48)).calls == 1


def _raises(x: Tensor) -> Tensor:
    raise ValueError("no such thing")


@pytest.mark.parametrize(
    ("make", "inputs", "why"),
    [
        (
            lambda: torch.compile(_raises, backend="eager"),
            torch.ones(2),
            "the eager call raised ValueError",
        ),
        (
            lambda: torch.compile(Perceptron(), backend="eager"),
            (torch.ones(2), 3, "x"),
            "the eager call raised TypeError",
        ),
        (lambda: Perceptron(), torch.ones(4, 48), "it is not a result of torch.compile"),
        (lambda: None, torch.ones(2), "it is not a result of torch.compile"),
    ],
)
def test_a_line_explains_why_nothing_can_be_measured(
    window: Window, make: Callable[[], Any], inputs: Any, why: str
) -> None:
    found = compilewatch.eager_baseline(make(), inputs)
    assert isinstance(found, EagerBaseline)
    assert (found.calls, found.text.startswith(f"not measured: {why}")) == (0, True), found.text
    assert RECORDER.get_thread_state().buffer is None


def test_an_agent_that_is_off_measures_nothing() -> None:
    assert (
        compilewatch.eager_baseline(
            torch.compile(Perceptron(), backend="eager"), torch.ones(4, 48)
        ).text
        == "not measured: the agent is off"
    )


def test_a_call_that_fails_halfway_restores_the_thread(window: Window) -> None:
    class Tired(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            self.calls = getattr(self, "calls", 0) + 1
            if self.calls > 8:
                raise RuntimeError("out of memory")
            return x

    found = compilewatch.eager_baseline(watched(Tired()), torch.ones(2), calls=20)
    assert found.text == "not measured: the eager call raised RuntimeError"
    assert RECORDER.get_thread_state().buffer is None


@pytest.fixture
def _not_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_warned", [])


@pytest.mark.usefixtures("_not_warned")
def test_the_old_name_measures_the_same_and_warns_once(window: Window) -> None:
    model, batch = watched(Perceptron()), torch.randn(4, 48)
    with pytest.warns(DeprecationWarning) as warned:
        found = [
            compilewatch.baseline(model, batch, calls=3),
            compilewatch.baseline(model, inputs=batch, calls=2),
        ]
    assert [(one.region, one.calls) for one in found] == [("forward", 3), ("forward", 2)]
    (eager,) = window().regions
    assert (eager.name, eager.runtime, eager.calls) == ("forward", "eager", 5)
    assert [(one.category, one.filename) for one in warned] == [(DeprecationWarning, __file__)]
    assert "compilewatch.eager_baseline" in str(warned[0].message)
    assert f"Release {measuring.OLD_NAME_REMOVED_IN} removes" in str(warned[0].message)


@pytest.mark.usefixtures("_not_warned")
def test_the_old_name_raises_nothing_if_warnings_are_errors(
    window: Window, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compilewatch.baseline(watched(Perceptron()), torch.randn(4, 48), calls=3)
    assert found.calls == 3
    assert "compilewatch.eager_baseline" in capsys.readouterr().err


@pytest.mark.usefixtures("_not_warned")
def test_the_new_name_warns_of_nothing(window: Window) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        assert (
            compilewatch.eager_baseline(watched(Perceptron()), torch.randn(4, 48), calls=3).calls
            == 3
        )


def test_the_old_name_is_removed_in_a_later_release() -> None:
    removed, present = (
        tuple(map(int, one.split(".")))
        for one in (measuring.OLD_NAME_REMOVED_IN, compilewatch.__version__)
    )
    assert present < removed
