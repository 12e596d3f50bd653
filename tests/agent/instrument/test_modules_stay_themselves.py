"""A watched nn.Module behaves as the module: attributes, parameters, hooks, pickling, `isinstance`;
watch and torch.compile work in either order."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.instrument.dynamo_skip import skip_frames
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Report

Window = Callable[[], Report]


class Net(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.seen = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    skip_frames()


def calls(report: Report) -> dict[tuple[str, str], int]:
    return {(region.name, region.bucket): region.calls for region in report.regions}


def test_a_watched_module_is_the_module(window: Window) -> None:
    net = Net()
    watched = compilewatch.watch(net)
    x = torch.randn(2, 4)
    assert isinstance(watched, Net) and type(watched).__name__ == "Net"
    assert torch.equal(watched(x), net(x))
    assert list(watched.state_dict()) == list(net.state_dict())
    assert [id(one) for one in watched.parameters()] == [id(one) for one in net.parameters()]
    watched.seen = 5
    watched.eval()
    assert (net.seen, net.training) == (5, False)
    assert calls(window()) == {("Net", "2^3"): 1}


def test_hooks_run_once_per_call(window: Window) -> None:
    fired: list[str] = []
    net = Net()
    watched = compilewatch.watch(net)
    net.register_forward_hook(lambda *args: fired.append("after"))
    watched.register_forward_pre_hook(lambda *args: fired.append("before"))
    watched(torch.randn(2, 4))
    assert fired == ["before", "after"]


def test_copies_are_watched_separately_and_a_pickle_holds_the_bare_module(window: Window) -> None:
    net = Net()
    watched = compilewatch.watch(net)
    copied, loaded = copy.deepcopy(watched), pickle.loads(pickle.dumps(watched))
    assert type(loaded) is Net
    with torch.no_grad():
        watched.linear.weight.zero_()
    x = torch.randn(2, 4)
    assert torch.equal(copied(x), loaded(x))
    assert not torch.equal(copied(x), watched(x))
    assert calls(window()) == {("Net", "2^3"): 3}


def test_a_watched_module_trains(window: Window) -> None:
    watched = compilewatch.watch(Net())
    optimizer = torch.optim.SGD(watched.parameters(), lr=0.1)
    before = watched.linear.weight.detach().clone()
    for _ in range(3):
        optimizer.zero_grad()
        watched(torch.randn(2, 4)).sum().backward()
        optimizer.step()
    assert not torch.equal(before, watched.linear.weight)
    assert calls(window()) == {("Net", "2^3"): 3}


def test_a_compiled_module_is_watched_from_outside(window: Window) -> None:
    watched = compilewatch.watch(torch.compile(Net(), backend="eager", fullgraph=True))
    for rows in (2, 2, 4):
        watched(torch.randn(rows, 4))
    assert calls(window()) == {("Net", "2^3"): 2, ("Net", "2^4"): 1}


def test_a_watched_module_can_be_compiled(window: Window) -> None:
    net = Net()
    compiled = torch.compile(compilewatch.watch(net), backend="eager", fullgraph=True)
    x = torch.randn(2, 4)
    assert all(torch.equal(compiled(x), net(x)) for _ in range(3))
    assert calls(window()) == {("Net", "2^3"): 3}


def test_a_watched_function_can_be_compiled_and_inlined(window: Window) -> None:
    @compilewatch.watch
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    compiled = torch.compile(inner, backend="eager", fullgraph=True)
    outer: Any = torch.compile(lambda x: inner(x) * 2, backend="eager", fullgraph=True)
    x = torch.randn(8)
    for _ in range(3):
        assert torch.equal(compiled(x), x.sin() + 1)
        assert torch.equal(outer(x), (x.sin() + 1) * 2)
    assert calls(window()) == {("inner", "2^3"): 3}


MODES = [
    ({}, "default"),
    ({"mode": "reduce-overhead"}, "reduce-overhead"),
    ({"backend": "eager"}, "eager"),
]


@pytest.mark.parametrize(("options", "mode"), MODES)
def test_the_mode_is_known_for_every_way_to_compile(
    window: Window, options: dict[str, Any], mode: str
) -> None:
    for target in (Net(), Net().forward):
        watched = compilewatch.watch(torch.compile(target, **options), name="net")
        with torch.compiler.set_stance("force_eager"):
            watched(torch.randn(2, 4))
        [region] = window().regions
        assert (region.mode, region.runtime) == (mode, "torch.compile")


def test_compile_remembers_its_options(window: Window) -> None:
    @compilewatch.compile(backend="eager", dynamic=True, name="step")
    def step(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    step(torch.randn(3))
    report = window()
    assert report.facts[0].data == {
        "name": "torch.compile",
        "region": "step",
        "dynamic": "True",
        "backend": "eager",
    }
    RECORDER.start()
    step(torch.randn(3))
    assert len(window().facts) == 1, "another instance reports its options again"
    assert [(region.name, region.runtime) for region in report.regions] == [
        ("step", "torch.compile")
    ]


def test_two_of_one_name_are_each_reported_with_their_own_options(window: Window) -> None:
    for dynamic in (False, True):
        compilewatch.compile(lambda x: x + 1, backend="eager", dynamic=dynamic, name="same name")(
            torch.randn(3)
        )
    assert [fact.data["dynamic"] for fact in window().facts] == ["False", "True"]
