"""Torch handles watched modules like bare modules: containers, wrappers, tracing, export, saving,
changes of class."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import compilewatch
import pytest
import torch
from compilewatch.instrument.dynamo_skip import skip_frames
from compilewatch.recording.recorder import RECORDER
from compilewatch.wire.messages import Report
from torch import nn
from torch.nn.utils import parametrize

Window = Callable[[], Report]


class Net(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()


class Triangle(nn.Module):  # type: ignore[misc]
    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.triu()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    skip_frames()
    yield
    assert RECORDER.internal_error_count == 0, RECORDER.last_error


X = torch.randn(2, 4)


def calls(report: Report) -> dict[tuple[str, str], int]:
    return {(region.name, region.bucket): region.calls for region in report.regions}


def test_a_watched_module_works_in_containers(window: Window) -> None:
    watched = compilewatch.watch(Net())
    row, rows = (
        nn.Sequential(watched, nn.ReLU()),
        nn.ModuleList([watched, nn.ModuleDict({"a": watched})]),
    )
    row(X)
    assert (
        row[0] is watched and watched in list(row.children()) and len(list(rows.parameters())) == 2
    )
    assert list(row.state_dict()) == ["0.linear.weight", "0.linear.bias"]
    assert [name for name, _ in row.named_modules()] == ["", "0", "0.linear", "1"]
    assert calls(window()) == {("Net", "2^3"): 1}


def test_weights_are_loaded_and_moved_and_modes_switched(window: Window) -> None:
    net, other = Net(), Net()
    watched = compilewatch.watch(net)
    watched.load_state_dict(other.state_dict())
    assert torch.equal(net.linear.weight, other.linear.weight)
    assert watched.to(torch.float64) is watched and net(X.double()).dtype is torch.float64
    assert (
        watched.eval() is watched and not net.training and net.train() is net and watched.training
    )
    watched.extra = nn.Linear(1, 1)
    assert "extra.weight" in net.state_dict()
    del net.extra
    assert not hasattr(watched, "extra") and repr(watched) == repr(other.double())


def test_hooks_are_those_of_both_modules(window: Window) -> None:
    fired: list[str] = []
    net = Net()
    watched = compilewatch.watch(net)
    net.register_forward_pre_hook(lambda module, args: fired.append(f"before {module == net}"))
    handle = watched.register_forward_hook(lambda module, args, out: fired.append("gone"))
    watched.register_full_backward_hook(
        lambda module, given, got: fired.append(f"backward {module == watched}")
    )
    handle.remove()
    watched(X.clone().requires_grad_()).sum().backward()
    assert fired == ["before True", "backward True"]


def test_wrappers_for_many_devices_accept_a_watched_module(window: Window, tmp_path: Path) -> None:
    net = Net()
    watched = compilewatch.watch(net)
    assert torch.equal(nn.DataParallel(watched)(X), net(X))
    replica = watched._replicate_for_data_parallel()
    assert (type(replica).__name__, replica == watched, hasattr(replica, "linear")) == (
        "Net",
        False,
        True,
    )
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    try:
        parallel = nn.parallel.DistributedDataParallel(watched)
        parallel(X).sum().backward()
        del parallel  # torch hangs if the wrapper outlives its process group
    finally:
        torch.distributed.destroy_process_group()
    assert net.linear.weight.grad is not None
    assert calls(window()) == {("Net", "2^3"): 2}


def test_a_watched_module_is_scripted_and_traced(window: Window) -> None:
    net = Net()
    watched = compilewatch.watch(net)
    assert torch.equal(torch.jit.script(watched)(X), net(X))
    assert torch.equal(torch.jit.trace(watched, (X,))(X), net(X))
    scripted = compilewatch.watch(torch.jit.script(net), name="scripted")
    assert torch.equal(scripted(X), net(X)) and "relu" in scripted.code
    assert calls(window())["scripted", "2^3"] == 1


def test_a_watched_module_is_exported_like_the_bare_module_with_every_size_open(
    window: Window,
) -> None:
    net = Net()
    watched = compilewatch.watch(net)
    open_size = {"dynamic_shapes": ({0: torch.export.Dim("batch")},)}
    for options in ({}, {"strict": True}, open_size):
        exported, bare = (torch.export.export(module, (X,), **options) for module in (watched, net))
        assert str(exported.graph) == str(bare.graph)
        assert torch.equal(exported.module()(X), net(X))


def test_fx_traces_a_watched_module_alone_and_as_a_part(window: Window) -> None:
    net = Net()
    watched = compilewatch.watch(net)
    assert torch.fx.symbolic_trace(watched).code == torch.fx.symbolic_trace(net).code
    assert torch.equal(torch.fx.symbolic_trace(nn.Sequential(watched))(X), net(X))
    traced = compilewatch.watch(torch.fx.symbolic_trace(net), name="traced")
    assert torch.equal(copy.deepcopy(traced)(X), net(X))
    assert calls(window())["traced", "2^3"] == 1


def test_a_file_holds_the_bare_module(window: Window) -> None:
    net = Net()
    file = io.BytesIO()
    torch.save(compilewatch.watch(net), file)
    assert b"compilewatch" not in file.getvalue()
    loaded = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert type(loaded) is Net and torch.equal(loaded(X), net(X))
    compiled = compilewatch.watch(torch.compile(net, backend="eager"))
    assert torch.equal(copy.deepcopy(compiled)(X), net(X))


def test_a_copy_has_its_own_attributes(window: Window) -> None:
    net = Net()
    copied = copy.copy(compilewatch.watch(net))
    copied.note = 1
    assert not hasattr(net, "note") and copied.linear is net.linear and isinstance(copied, Net)
    copied(X)
    assert calls(window()) == {("Net", "2^3"): 1}


def test_modules_that_change_their_class_change_it_in_both(window: Window) -> None:
    lazy = nn.LazyLinear(3)
    watched = compilewatch.watch(lazy)
    watched(X)
    assert type(lazy) is nn.Linear and torch.equal(watched(X), lazy(X))
    parametrize.register_parametrization(watched, "weight", nn.Identity())
    assert torch.equal(watched(X), lazy(X)) and parametrize.is_parametrized(lazy)
    parametrize.remove_parametrizations(watched, "weight")
    assert type(lazy) is nn.Linear and watched.__class__ is nn.Linear
    assert calls(window()) == {("LazyLinear", "2^3"): 3}


def test_a_watched_module_compiles_in_place_and_inside_another(window: Window) -> None:
    net = Net()
    watched = compilewatch.watch(net)
    whole = torch.compile(nn.Sequential(watched, nn.ReLU()), backend="eager", fullgraph=True)
    assert all(torch.equal(whole(X), net(X)) for _ in range(3))
    watched.compile(backend="eager", fullgraph=True)
    assert all(torch.equal(watched(X), whole(X)) for _ in range(3))
    assert calls(window()) == {("Net", "2^3"): 3}


def test_methods_compile_in_either_order(window: Window) -> None:
    class Decorated(nn.Module):  # type: ignore[misc]
        @compilewatch.watch(name="decorated")
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    net = Net()
    inside = torch.compile(
        compilewatch.watch(net.forward, name="inside"), backend="eager", fullgraph=True
    )
    outside = compilewatch.watch(torch.compile(net.forward, backend="eager", fullgraph=True))
    decorated = torch.compile(Decorated(), backend="eager", fullgraph=True)
    for _ in range(3):
        assert (
            torch.equal(inside(X), net(X))
            and torch.equal(outside(X), net(X))
            and torch.equal(decorated(X), X + 1)
        )
    assert calls(window()) == {("inside", "2^3"): 3, ("Net", "2^3"): 3, ("decorated", "2^3"): 3}


def test_transforms_accept_a_watched_module(window: Window) -> None:
    net = Net()
    watched = compilewatch.watch(net)
    batch = torch.randn(3, 2, 4)
    assert torch.equal(torch.func.vmap(watched)(batch), torch.func.vmap(net)(batch))
    assert torch.equal(
        torch.func.functional_call(watched, dict(net.named_parameters()), (X,)), net(X)
    )
    assert torch.func.grad(compilewatch.watch(lambda x: (x * x).sum(), name="square"))(X).equal(
        2 * X
    )
