"""`shadow` also runs some calls eager: speed-up and error are reported, the answer is always that
of the callable, and impure callables are excluded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.numerics import live_results
from compilewatch.numerics import shadow_calls as shadowing
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Region, Report
from compilewatch.wire.numerics import Parity, parity_of
from torch import Tensor, nn

from tests.agent.golden_models import Perceptron

Window = Callable[[], Report]


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    monkeypatch.setattr(live_results, "REPORT_INTERVAL_S", 0.0)
    monkeypatch.setattr(live_results, "_names", set())
    monkeypatch.setattr(shadowing, "_off", [])


def compiled(fn: Any, backend: Any = "aot_eager") -> Any:
    return torch.compile(fn, backend=backend)


def every_call(fn: Any, backend: Any = "aot_eager") -> Any:
    """Compiled, warm, and with a shadow call for each call."""
    return compilewatch.shadow(compiled(fn, backend), rate=1.0)


def last(report: Report) -> Parity:
    return [parity_of(fact.data) for fact in report.facts if fact.kind == "parity"][-1]


def regions(report: Report) -> dict[tuple[str, str, bool], Region]:
    return {(one.name, one.runtime, one.outermost): one for one in report.regions}


def test_speed_up_and_error_are_reported_and_eager_times_are_next_to_the_region(
    window: Window,
) -> None:
    class Slow(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if not torch.compiler.is_compiling():
                time.sleep(0.004)
            return x * 2.0

    model, batch = every_call(Slow()), torch.randn(16, 16)
    answers = [model(batch) for _ in range(11)]
    assert all(torch.equal(one, batch * 2.0) for one in answers)
    report = window()
    found = last(report)
    assert (found.kind, found.state, found.region, found.samples, found.timed, found.beyond) == (
        "shadow",
        "passed",
        "Slow",
        11,
        10,
        0,
    )
    assert found.error == 0.0 and found.relative == 0.0 and found.tolerance is not None
    assert found.compiled_seconds is not None and found.eager_seconds is not None
    assert found.eager_seconds > 0.004 > 0.0 < found.compiled_seconds
    seen = regions(report)
    assert (seen["Slow", "torch.compile", True].calls, seen["Slow", "eager", False].calls) == (
        11,
        10,
    )
    assert seen["Slow", "eager", False].bucket == seen["Slow", "torch.compile", True].bucket


def test_about_the_requested_share_of_calls_is_drawn_and_the_others_pass_through(
    window: Window,
) -> None:
    function = compilewatch.shadow(
        compilewatch.watch(compiled(lambda x: x + 1.0), name="forward"), rate=0.05
    )
    batch = torch.ones(4)
    for _ in range(2000):
        function(batch)
    report = window()
    assert regions(report)["forward", "torch.compile", True].calls == 2000
    assert 50 <= last(report).samples <= 160


def test_a_wrong_result_is_reported_once_it_is_significant(window: Window) -> None:
    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        return lambda *args: (graph(*args)[0] * 1.01,)

    model = every_call(Perceptron().eval(), backend)
    with torch.no_grad():
        states = []
        for _ in range(5):
            model(torch.randn(8, 48))
            states.append(last(window()).state)
        model(torch.randn(8, 48))
    found = last(window())
    assert states == ["passed", "passed", "failed", "failed", "failed"]
    assert (found.samples, found.beyond) == (6, 6) and found.relative == pytest.approx(
        0.01, rel=0.05
    )


def test_nan_only_when_compiled_is_beyond_the_tolerance(window: Window) -> None:
    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        return lambda *args: (graph(*args)[0] * float("nan"),)

    model = every_call(lambda x: x * 2.0, backend)
    for _ in range(3):
        model(torch.ones(4))
    found = last(window())
    assert (found.state, found.beyond, found.nonfinite) == ("failed", 3, 12)
    assert "4 values of output are NaN or infinite compiled and finite eager" in found.why


def test_grad_mode_and_autocast_are_those_of_the_call(window: Window) -> None:
    modes: list[tuple[bool, bool, bool]] = []
    note = modes.append  # the list itself would be state that the module keeps

    class Asking(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if not torch.compiler.is_compiling():
                note((torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), x.requires_grad))
            return x @ x

    model = every_call(Asking())
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        model(torch.ones(8, 8))
    answer = model(torch.ones(8, 8, requires_grad=True))
    assert modes == [(False, True, False), (True, False, True)]
    answer.sum().backward()
    assert last(window()).state == "passed"


def test_attributes_with_defaults_are_supported(window: Window) -> None:
    def inner(x: Tensor, factor: float = 2.0, *, more: float = 1.0) -> Tensor:
        return x * factor + more

    others: list[tuple[object, object]] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        def run(*args: Tensor) -> Any:
            others.extend(
                (object(), None) for _ in range(100)
            )  # the objects checked before now have other addresses
            return graph(*args)

        return run

    model = every_call(lambda x: inner(x), backend)
    for _ in range(4):
        model(torch.ones(4))
    found = last(window())
    assert (found.why, found.samples) == ("", 4)


def test_gradients_of_the_answer_are_those_of_the_callable(window: Window) -> None:
    module, batch = Perceptron(), torch.randn(4, 48)
    model = every_call(module)
    for _ in range(3):
        model(batch).sum().backward()
    mine = [one.grad for one in module.parameters()]
    module.zero_grad()
    for _ in range(3):
        module(batch).sum().backward()
    assert all(
        torch.allclose(one, two.grad, rtol=1e-4, atol=1e-5)
        for one, two in zip(mine, module.parameters(), strict=True)
    )


NO_MEMORY = (
    torch.OutOfMemoryError("CUDA out of memory"),
    MemoryError(),
    RuntimeError("DefaultCPUAllocator: can't allocate memory"),
)


@pytest.mark.parametrize("error", NO_MEMORY)
def test_running_out_of_memory_ends_all_shadow_calls_of_the_process(
    window: Window, error: Exception
) -> None:
    tried: list[str] = []

    def greedy(name: str) -> Any:
        class Greedy(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                if not torch.compiler.is_compiling():
                    tried.append(name)
                    raise error
                return x * 2.0

        return every_call(Greedy())

    one, two = greedy("one"), greedy("two")
    for _ in range(5):
        assert torch.equal(one(torch.ones(4)), torch.full((4,), 2.0))
        assert torch.equal(two(torch.ones(4)), torch.full((4,), 2.0))
    assert tried == ["one"]
    assert (
        last(window()).why
        == "a shadow call ran out of memory: shadow calls are off in this process"
    )


def test_an_error_of_the_eager_call_does_not_reach_the_job(window: Window) -> None:
    def odd(x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling():
            raise ValueError("never seen")
        return x * 2.0

    model = every_call(odd)
    assert all(torch.equal(model(torch.ones(4)), torch.full((4,), 2.0)) for _ in range(4))
    assert (
        last(window()).why == "the eager call raised ValueError"
        and RECORDER.internal_error_count == 0
    )


def test_an_error_of_the_callable_is_raised(window: Window) -> None:
    def fails(x: Tensor) -> Tensor:
        raise KeyError(len(x))

    model = every_call(fails)
    for _ in range(3):
        with pytest.raises(KeyError):
            model(torch.ones(4))
    assert not [fact for fact in window().facts if fact.kind == "parity"]


def test_a_call_during_a_compilation_is_not_sampled(window: Window) -> None:
    model = every_call(lambda x: x * 2.0)
    RECORDER.on_compile_start("another frame")
    model(torch.ones(4))
    RECORDER.on_compile_stop()
    assert not [fact for fact in window().facts if fact.kind == "parity"]
    model(torch.ones(4))
    assert last(window()).samples == 1


def test_an_outer_compilation_traces_the_inner_callable(window: Window) -> None:
    inner = every_call(Perceptron().eval(), "eager")
    function = every_call(lambda x: x * 2.0, "eager")
    outer = torch.compile(lambda x: function(inner(x)) + 1.0, backend="eager", fullgraph=True)
    batch = torch.randn(4, 48)
    with torch.no_grad():
        assert torch.allclose(outer(batch), inner._orig_mod(batch) * 2.0 + 1.0)
    assert not [fact for fact in window().facts if fact.kind == "parity"]


def test_threads_sample_one_call_at_a_time(window: Window) -> None:
    alone, met, ran = threading.Lock(), list[int](), list[int]()
    others, counted = met.append, ran.append

    class Busy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if not torch.compiler.is_compiling():
                if not alone.acquire(blocking=False):
                    others(1)
                    return x * 2.0
                time.sleep(0.01)
                alone.release()
                counted(1)
            return x * 2.0

    model = every_call(Busy())
    model(torch.ones(4))
    threads = [
        threading.Thread(target=lambda: [model(torch.ones(4)) for _ in range(10)]) for _ in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not met and len(ran) >= 10 and last(window()).state == "passed"


def test_a_module_stays_a_module(window: Window) -> None:
    module = Perceptron().eval()
    model = every_call(module)
    assert isinstance(model, nn.Module) and set(model.state_dict()) == {
        f"_orig_mod.{name}" for name in module.state_dict()
    }
    assert compilewatch.golden("g", model, torch.randn(4, 48)).parity.region == "Perceptron"
    assert compilewatch.eager_baseline(model, torch.randn(4, 48), calls=3).calls == 3


@pytest.mark.parametrize("rate", [0.0, -1.0, 1.5, float("nan")])
def test_an_invalid_rate_does_not_change_the_callable(
    window: Window, rate: float, capsys: pytest.CaptureFixture[str]
) -> None:
    fn = compiled(lambda x: x)
    assert compilewatch.shadow(fn, rate=rate) is fn


def test_suspended_calls_are_not_changed(window: Window) -> None:
    async def later(x: Tensor) -> Tensor:
        return x

    assert compilewatch.shadow(later) is later
    assert compilewatch.shadow(3) == 3  # type: ignore[type-var]
