"""A golden batch is compared after a warm-up as before the first call, for every frame on which
torch keeps the compiled code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.numerics.execution import observe_execution
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Report
from torch import Tensor, nn

Window = Callable[[], Report]


class NoGrad(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 4)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.linear(x)
        return answer


class Rectified(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).relu()


class Inferring(NoGrad):
    @torch.inference_mode()
    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.linear(x)
        return answer


MODELS: dict[str, Callable[[], nn.Module]] = {
    "nn.Linear": lambda: nn.Linear(16, 4),
    "nn.Sequential": lambda: nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)),
    "nn.TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
    "nn.BatchNorm1d": lambda: nn.BatchNorm1d(16),
    "a forward under no_grad": NoGrad,
    "a forward under inference_mode": Inferring,
}


@pytest.fixture(autouse=True)
def _from_the_start() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def process_group() -> Iterator[None]:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    yield
    torch.distributed.destroy_process_group()


def compared(name: str, model: Any, calls: int) -> compilewatch.numerics.golden.Golden:
    batch = torch.randn(6, 16)
    for _ in range(calls):
        model(batch)
    return compilewatch.golden(name, model, (batch,))


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_passes_before_and_after_a_warm_up(window: Window, name: str) -> None:
    for calls in (0, 3):
        torch._dynamo.reset()
        found = compared(name, torch.compile(MODELS[name]().eval(), backend="aot_eager"), calls)
        assert (found.state, found.failed) == ("passed", False), (calls, found.text)


def test_a_batch_passes_for_a_module_compiled_in_place(window: Window) -> None:
    model = NoGrad().eval()
    model.compile(backend="aot_eager")
    assert compared("in place", model, 3).state == "passed"


def wrong(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
    """A backend whose code is off by one hundredth."""
    return lambda *args: tuple(one * 1.01 for one in graph.forward(*args))


@pytest.mark.parametrize(
    ("backend", "state"), [("aot_eager", "passed"), (wrong, "failed")], ids=["right", "wrong"]
)
def test_ddp_is_compared_around_compiled_code_and_inside_it(
    window: Window, process_group: None, backend: Any, state: str
) -> None:
    parallel = nn.parallel.DistributedDataParallel
    outside = compared("outside", parallel(torch.compile(Rectified().eval(), backend=backend)), 3)
    torch._dynamo.reset()
    inside = compared("inside", torch.compile(parallel(Rectified().eval()), backend=backend), 3)
    assert (outside.state, inside.state) == (state, state)


def test_a_wrong_result_is_found_after_a_warm_up(window: Window) -> None:
    assert (
        compared(
            "wrong", torch.compile(nn.Sequential(nn.Linear(16, 4)).eval(), backend=wrong), 3
        ).state
        == "failed"
    )


def test_a_batch_that_met_no_compiled_code_is_a_finding_and_fails_where_it_is_required(
    window: Window,
) -> None:
    def broken(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        raise RuntimeError("no compiler")

    compiled = torch.compile(lambda x: x * 2.0, backend=broken)
    with torch._dynamo.config.patch(suppress_errors=True):
        found = compilewatch.golden("optional", compiled, torch.ones(4))
        required = compilewatch.golden("gate", compiled, torch.ones(4), required=True)
    assert (found.state, found.failed) == ("not compared", False)
    assert (required.state, required.failed) == ("not compared", True)
    texts = [finding.text for finding in window().findings if finding.kind == "golden_not_compared"]
    assert texts == ["optional: nothing of it was compiled", "gate: nothing of it was compiled"]


def test_the_owner_of_torchs_hook_sees_every_lookup_and_gets_the_hook_back(window: Window) -> None:
    heard: list[bool] = []

    def theirs(hit: bool) -> bool:
        heard.append(hit)
        return hit

    slot = torch._C._dynamo.eval_frame.set_guard_complete_hook
    before = slot(theirs)
    try:
        compiled = torch.compile(lambda x: x + 1.0, backend="aot_eager")
        compiled(torch.ones(2))
        with observe_execution() as ran:
            compiled(torch.ones(2))
        assert (ran.known, ran.hits, ran.compiled) == (True, 1, True)
        assert heard[-1:] == [True]
        assert slot(theirs) is theirs
    finally:
        slot(before)
    assert RECORDER.internal_error_count == 0
