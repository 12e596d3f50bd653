"""A callable that changes its arguments, keeps state or draws random numbers is detected by a trial
and excluded from `shadow`, with the reason reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Report
from torch import Tensor, nn

from tests.agent.golden_models import Convolution
from tests.agent.numerics.test_shadow_calls_run_eager_next_to_live_calls import (
    _fresh,
    every_call,
    last,
)

__all__ = ["_fresh"]
Window = Callable[[], Report]


class KeyValues(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(8, 4))
        self.project = nn.Linear(4, 4)

    def forward(self, x: Tensor, at: int) -> Tensor:
        self.keys[at] = self.project(x)  # type: ignore[index,operator]
        answer: Tensor = self.keys.sum(0) + x  # type: ignore[operator]
        return answer


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(1)
        return x * 2.0


class Cache:
    def __init__(self) -> None:
        self.layers: list[Tensor] = []


def _cached(x: Tensor, cache: Cache) -> Tensor:
    cache.layers.append(x * 2.0)
    return x + 1.0


def _kept(kept: list[int]) -> Callable[[Tensor], Tensor]:
    def call(x: Tensor) -> Tensor:
        kept.append(1)
        return x * 2.0

    return call


LEFT: dict[str, tuple[Callable[[], Any], Callable[[], tuple[Any, ...]]]] = {
    "it changes argument 0 in place": (lambda: lambda x: x.add_(1.0), lambda: (torch.ones(4),)),
    "it changes argument 0[k] in place": (
        lambda: lambda held: held["k"].mul_(2.0),
        lambda: ({"k": torch.ones(4)},),
    ),
    "it changes argument 1.layers in place": (lambda: _cached, lambda: (torch.ones(4), _ONE)),
    "it keeps state: keys changes": (KeyValues, lambda: (torch.ones(4), 3)),
    "it keeps state: norm.num_batches_tracked changes": (
        lambda: Convolution().train(),
        lambda: (torch.randn(2, 3, 12, 12),),
    ),
    "it keeps state: seen changes": (Counting, lambda: (torch.ones(4),)),
    "it keeps state: kept changes": (lambda: _kept([]), lambda: (torch.ones(4),)),
    "it draws random numbers": (lambda: nn.Dropout(), lambda: (torch.ones(400),)),
    "its argument is on meta: reading would wait for it": (
        lambda: lambda x: x + 1.0,
        lambda: (torch.ones(4, device="meta"),),
    ),
    "it returns no tensor": (lambda: lambda x: None, lambda: (torch.ones(4),)),
}
_ONE = Cache()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
@pytest.mark.parametrize("why", LEFT)
def test_an_impure_callable_is_excluded_and_its_reason_reported(
    window: Window, why: str, mode: Any
) -> None:
    make, inputs = LEFT[why]
    model = every_call(make())
    with mode():
        for _ in range(8):
            model(*inputs())
    found = last(window())
    assert (found.state, found.why, found.samples, found.kind) == ("not compared", why, 0, "shadow")
    assert RECORDER.internal_error_count == 0


@pytest.mark.needs("a C++ compiler")
def test_the_state_of_a_module_is_as_without_the_agent(window: Window) -> None:
    torch.manual_seed(0)
    module = Convolution().train()
    plain = Convolution().train()
    plain.load_state_dict(module.state_dict())
    shadowed, alone = every_call(module, "inductor"), torch.compile(plain, backend="inductor")
    for _ in range(4):
        batch = torch.randn(2, 3, 12, 12)
        with torch.no_grad():
            mine, theirs = shadowed(batch), alone(batch)
        assert torch.equal(mine["map"], theirs["map"])
    assert all(
        torch.equal(one, two)
        for one, two in zip(module.state_dict().values(), plain.state_dict().values(), strict=True)
    )


class Elsewhere(nn.Module):
    def __init__(self, noted: list[int], on: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, device=on))
        self.note = noted.append

    def forward(self, x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling():
            self.note(1)
        return torch.ones(4, device="meta") + 1.0


@pytest.mark.parametrize(("on", "what"), [("meta", "weights are"), ("cpu", "output is")])
def test_a_callable_on_another_device_is_excluded_before_anything_runs_twice(
    window: Window, on: str, what: str
) -> None:
    noted: list[int] = []
    model = every_call(Elsewhere(noted, on))
    for _ in range(3):
        model(torch.ones(4))
    assert last(window()).why == f"its {what} on meta: reading would wait for it" and noted == []
