"""TorchScript profiles and compiles during the first calls of a callable: these calls are warm-up,
later calls are latency."""

from __future__ import annotations

from collections.abc import Callable

import compilewatch
import pytest
import torch
from compilewatch.instrument.torchscript_warm_up import warmup_calls
from compilewatch.sources.runtimes.torchscript import TorchScript
from compilewatch.wire.messages import Region

from tests.agent.sources.conftest import Seen


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


MADE: dict[str, Callable[[], Callable[[torch.Tensor], torch.Tensor]]] = {
    "scaled": lambda: torch.jit.script(scaled),
    "Net": lambda: torch.jit.script(Net()),
    "traced": lambda: torch.jit.trace(Net(), torch.ones(2, 4)),
    "frozen": lambda: torch.jit.freeze(torch.jit.script(Net().eval())),
}
NAMES = {"traced": "Net", "frozen": "Net"}


def regions_of(watching: Seen) -> dict[str, Region]:
    return {region.name: region for region in watching.look().regions}


@pytest.mark.parametrize("kind", MADE)
def test_the_first_calls_are_warm_up_and_the_rest_is_latency(kind: str, watching: Seen) -> None:
    made = MADE[kind]()
    watched = compilewatch.watch(made)
    outer = compilewatch.watch(lambda x: watched(x), name="outer")
    x = torch.ones(2, 4)
    for _ in range(10):
        torch.testing.assert_close(outer(x), made(x))
    found = regions_of(watching)
    inner, around = found[NAMES.get(kind, kind)], found["outer"]
    assert (inner.runtime, inner.calls, inner.unknown, inner.sampled) == ("torchscript", 10, 0, 0)
    for region in (inner, around):
        assert region.warmup is not None and region.latency is not None
        assert (region.warmup.count, region.latency.count) == (warmup_calls(), 10 - warmup_calls())


def test_the_module_that_torch_compiled_stays_accessible(watching: Seen) -> None:
    function, module = (
        compilewatch.watch(torch.jit.script(scaled)),
        compilewatch.watch(torch.jit.script(Net())),
    )
    assert "aten::sin" in str(function.graph) and "relu" in module.code
    assert (
        isinstance(module, torch.jit.ScriptModule)
        and module.state_dict().keys() == Net().state_dict().keys()
    )


def test_the_capability_names_what_torch_does_not_report(watching: Seen) -> None:
    grade, why = TorchScript().install(watching.recorder)
    assert grade == "partly" and why.startswith(
        "the first 3 calls of a callable count as warm-up; torch does not report"
    )
