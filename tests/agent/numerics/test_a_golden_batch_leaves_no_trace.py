"""A golden batch never raises into the job, restores all state, and reports why nothing could be
compared."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import compilewatch
import numpy
import pytest
import torch
from compilewatch.numerics import isolated_run, reference_models
from compilewatch.numerics.golden import Golden
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Report
from compilewatch.wire.numerics import MAX_GOLDENS
from torch import Tensor, nn

from tests.agent.golden_models import Convolution, Perceptron

Window = Callable[[], Report]


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    monkeypatch.setattr("compilewatch.numerics.golden._reported_states", {})


def eager_like(fn: Any) -> Any:
    return torch.compile(fn, backend="aot_eager")


def test_state_of_the_job_is_restored(window: Window) -> None:
    module = Convolution().train()
    module.one.weight.grad = torch.ones_like(module.one.weight)
    before = {name: one.clone() for name, one in module.state_dict().items()}
    batch = torch.randn(2, 3, 12, 12)
    given = batch.clone()
    drawn, own, arrays = torch.get_rng_state(), random.getstate(), str(numpy.random.get_state())
    with torch.no_grad():
        found = compilewatch.golden("g", eager_like(module), (batch,), grads=True)
        assert not torch.is_grad_enabled()
    assert found.state == "passed" and found.parity.gradients > 0
    assert all(torch.equal(one, before[name]) for name, one in module.state_dict().items())
    assert module.training and torch.equal(batch, given)
    assert (
        torch.equal(module.one.weight.grad, torch.ones_like(module.one.weight))
        and module.two.weight.grad is None
    )
    assert torch.equal(torch.get_rng_state(), drawn)
    assert (random.getstate(), str(numpy.random.get_state())) == (own, arrays)


def test_calls_of_a_golden_batch_are_no_traffic(window: Window) -> None:
    watched = compilewatch.watch(eager_like(Perceptron()), name="forward")
    plain = compilewatch.golden("p", eager_like(Perceptron()), torch.randn(4, 48))
    assert plain.parity.region == "Perceptron"
    found = compilewatch.golden("g", watched, torch.randn(4, 48))
    assert (found.state, found.parity.region) == ("passed", "forward")
    assert [region.calls for region in window().regions] == []


def _raises(x: Tensor) -> Tensor:
    raise ValueError(f"no {len(x)} rows")


def _no_memory(x: Tensor) -> Tensor:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7 GiB")


def _keeps(kept: list[int] = []) -> Callable[[Tensor], Tensor]:  # noqa: B006 - the state kept between calls is the point
    def call(x: Tensor) -> Tensor:
        kept.append(1)
        return x + len(kept)

    return call


SAYS: dict[str, tuple[Any, Any]] = {
    "the eager call raised ValueError: no 4 rows": (_raises, torch.ones(4)),
    "the eager call ran out of memory": (_no_memory, torch.ones(4)),
    "two eager calls differ: the callable is random or keeps state between calls": (
        lambda x: nn.functional.dropout(x),
        torch.ones(400),
    ),
    "it changes its inputs in place": (lambda x: x.mul_(2.0), torch.ones(4)),
    "it returns no tensor": (lambda x: "nothing", torch.ones(4)),
    "nothing of it was compiled": (lambda x: x, torch.ones(4)),
}


@pytest.mark.parametrize("why", SAYS)
def test_a_batch_that_cannot_be_compared_reports_the_reason(window: Window, why: str) -> None:
    fn, inputs = SAYS[why]
    found = compilewatch.golden("g", eager_like(fn), inputs)
    assert (found.state, found.text) == ("not compared", why)
    (fact,) = window().facts
    assert (fact.data["state"], fact.data["why"], fact.data["ok"]) == ("not compared", why, True)


def test_a_compiled_call_that_raises_is_reported(window: Window) -> None:
    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        def call(*args: Any) -> Any:
            raise MemoryError

        return call

    found = compilewatch.golden(
        "g", torch.compile(lambda x: x * 2.0, backend=backend), torch.ones(4)
    )
    assert (found.state, found.text) == ("not compared", "the compiled call ran out of memory")


def test_a_callable_that_keeps_state_is_not_compared(window: Window) -> None:
    assert "keeps state" in compilewatch.golden("g", eager_like(_keeps()), torch.ones(4)).text


def test_an_input_that_only_the_compiled_one_changes_is_a_fault(window: Window) -> None:
    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        return lambda x: (x.mul_(2.0),)

    found = compilewatch.golden(
        "g", torch.compile(lambda x: x * 2.0, backend=backend), torch.ones(4)
    )
    assert (found.state, found.text) == (
        "failed",
        "the compiled callable changes its inputs, eager does not",
    )


@pytest.mark.parametrize(
    ("fn", "inputs"),
    [
        (None, None),
        (3, ()),
        (lambda: 1, object()),
        (torch.nn.Linear(2, 2), torch.ones(2)),
        (eager_like, {"x": 1}),
    ],
)
def test_no_argument_raises(window: Window, fn: Any, inputs: Any) -> None:
    found = compilewatch.golden("g", fn, inputs)
    assert found.state == "not compared" and found.text
    assert RECORDER.internal_error_count == 0


def test_interrupts_reach_the_job(window: Window) -> None:
    def stopped(x: Tensor) -> Tensor:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compilewatch.golden("g", eager_like(stopped), torch.ones(4))
    assert torch.is_grad_enabled()


def test_without_an_agent_nothing_is_called() -> None:
    called = []
    found = compilewatch.golden("g", eager_like(lambda x: called.append(x)), torch.ones(4))
    assert (found.state, found.text, called) == ("not compared", "the agent is off", [])


def test_without_compilation_nothing_is_claimed(window: Window) -> None:
    with torch.compiler.set_stance("force_eager"):
        found = compilewatch.golden("g", eager_like(Perceptron()), torch.randn(4, 48))
    assert (found.state, found.text) == (
        "not compared",
        "torch's stance is force_eager: nothing runs compiled",
    )


def test_modules_compiled_in_place_and_methods_are_compared_with_their_originals(
    window: Window,
) -> None:
    module = Perceptron()
    module.compile(backend="aot_eager")
    implementation = module._compiled_call_impl
    found: list[Golden] = [compilewatch.golden("in place", module, torch.randn(4, 48))]
    assert module._compiled_call_impl is implementation
    found.append(
        compilewatch.golden("method", eager_like(Perceptron().forward), {"x": torch.randn(4, 48)})
    )
    found.append(
        compilewatch.golden(
            "nested", eager_like(nn.Sequential(Perceptron(), Perceptron())), (torch.randn(4, 48),)
        )
    )
    assert [(one.state, one.parity.reference) for one in found] == [("passed", "float64")] * 3


def test_a_part_that_is_compiled_alone_asks_for_a_reference(window: Window) -> None:
    part = Perceptron()
    whole = nn.Sequential(eager_like(part), nn.Linear(48, 4))
    plain = nn.Sequential(part, whole[1])
    batch = torch.randn(4, 48)
    without = compilewatch.golden("g", eager_like(whole), batch)
    assert (
        without.state == "not compared"
        and "pass the same callable without torch.compile as reference=" in without.text
    )
    assert compilewatch.golden("h", eager_like(whole), batch, reference=plain).state == "passed"


def test_without_memory_for_a_copy_eager_alone_is_the_reference(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_models, "_free", lambda torch, device: 0.0)
    found = compilewatch.golden("g", eager_like(Perceptron()), torch.randn(4, 48))
    assert (found.state, found.parity.reference) == ("passed", "eager")
    assert "against eager" in found.text


def test_code_that_supports_one_precision_is_compared_with_eager_alone(window: Window) -> None:
    weight = torch.randn(8, 8)
    found = compilewatch.golden("g", eager_like(lambda x: x @ weight), torch.randn(4, 8))
    assert (found.state, found.parity.reference) == ("passed", "eager")


def test_names_are_bounded(window: Window) -> None:
    fn = eager_like(lambda x: x * 2.0)
    for number in range(MAX_GOLDENS + 3):
        assert compilewatch.golden(f"g{number}", fn, torch.ones(2)).state == "passed"
    assert len([fact for fact in window().facts if fact.kind == "parity"]) == MAX_GOLDENS


def test_a_result_of_too_many_tensors_is_not_compared(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated_run, "MAX_TENSORS", 2)
    found = compilewatch.golden("g", eager_like(lambda x: (x + 1, x + 2, x + 3)), torch.ones(4))
    assert found.text == "it returns 3 tensors, the limit is 2"
