"""A module that holds its own compiled method, as after `model.forward =
torch.compile(model.forward)`, is compared with the original method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.wire.messages import Report
from torch import Tensor, nn

Window = Callable[[], Report]
CALLS = 3


class Ranker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.two(self.embed(x))
        return answer

    def embed(self, x: Tensor) -> Tensor:
        return torch.relu(self.one(x))


class Whole(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.part(x) + 1.0
        return answer


class Compiler:
    """A backend that records the precisions of its inputs, and is wrong by a share."""

    def __init__(self, share: float) -> None:
        self.share, self.dtypes = share, set[torch.dtype]()

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        self.dtypes |= {one.dtype for one in inputs if isinstance(one, Tensor)}
        return lambda *args: tuple(one * (1.0 + self.share) for one in graph.forward(*args))


@pytest.fixture(autouse=True)
def _from_the_start() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def module_with(name: str, compile_it: Callable[[Any], Any]) -> Ranker:
    module = Ranker().eval()
    setattr(module, name, compile_it(getattr(module, name)))
    return module


HOLDERS: dict[str, Callable[[Compiler], Any]] = {
    "a module whose forward is compiled": lambda backend: module_with(
        "forward", lambda fn: torch.compile(fn, backend=backend)
    ),
    "that forward": lambda backend: (
        module_with("forward", lambda fn: torch.compile(fn, backend=backend)).forward
    ),
    "another method": lambda backend: (
        module_with("embed", lambda fn: torch.compile(fn, backend=backend)).embed
    ),
    "a module whose forward is compiled and watched": lambda backend: module_with(
        "forward", lambda fn: compilewatch.compile(fn, name="rank", backend=backend)
    ),
    "a module compiled around one whose forward is compiled": lambda backend: torch.compile(
        Whole(module_with("forward", lambda fn: torch.compile(fn, backend=backend))).eval(),
        backend=backend,
    ),
}


@pytest.mark.parametrize("share", [0.0, 0.01])
@pytest.mark.parametrize("holder", HOLDERS)
def test_the_module_is_compared_with_the_original_method(
    window: Window, holder: str, share: float
) -> None:
    compiler, batch = Compiler(share), torch.randn(6, 16)
    held = HOLDERS[holder](compiler)
    for _ in range(CALLS):
        held(batch)
    found = compilewatch.golden(holder, held, batch)
    assert (found.state, found.parity.reference) == ("failed" if share else "passed", "float64"), (
        found.text
    )
    assert compiler.dtypes == {torch.float32}, "the higher precision is never compiled"


def test_the_module_holds_its_compiled_method_afterwards(window: Window) -> None:
    module = module_with("forward", lambda fn: torch.compile(fn, backend="aot_eager"))
    kept = module.forward
    assert compilewatch.golden("kept", module, torch.randn(6, 16)).state == "passed"
    assert module.forward is kept and vars(module)["forward"] is kept


def test_a_golden_batch_of_a_watched_forward_is_no_traffic(window: Window) -> None:
    module = module_with(
        "forward", lambda fn: compilewatch.compile(fn, name="rank", backend="aot_eager")
    )
    assert compilewatch.golden("no traffic", module, torch.randn(6, 16)).state == "passed"
    assert [region.calls for region in window().regions] == []


def test_a_module_with_hooks_around_a_compiled_forward_asks_for_a_reference(window: Window) -> None:
    module = module_with("forward", lambda fn: torch.compile(fn, backend="aot_eager"))
    module.register_forward_hook(lambda part, inputs, answer: answer * 2.0)
    found = compilewatch.golden("hooks", module, torch.randn(6, 16))
    assert found.state == "not compared" and "reference=" in found.text
