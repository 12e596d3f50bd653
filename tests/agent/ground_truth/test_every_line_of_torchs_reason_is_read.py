"""Torch gives a reason for each cache entry that did not match. The cause is the reason of the
entry that was compiled for such a call, with the same layer and the same shape; without such an
entry, each guard that failed is a cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from tests.agent.sources.conftest import Seen, found

NUM_THREADS, GRAD_MODE = "GLOBAL_STATE changed: num_threads", "GLOBAL_STATE changed: grad_mode"
Layers = list[Callable[[torch.Tensor], torch.Tensor]]


class Layer(torch.nn.Module):
    def __init__(self, tag: int) -> None:
        super().__init__()
        self.tag = tag

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.tag


def layers(count: int) -> Layers:
    return [
        torch.compile(Layer(tag), backend="eager", dynamic=False) for tag in range(1, 1 + count)
    ]


def through(stack: Layers, x: torch.Tensor) -> None:
    for layer in stack:
        x = layer(x)


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def reasons(seen: Seen) -> list[str]:
    return [compile.reason for compile in seen.compiles()]


def test_a_global_setting_is_the_cause_for_each_layer_that_shares_code(seen: Seen) -> None:
    stack = layers(4)
    with threads(2):
        through(stack, torch.ones(3))
    assert reasons(seen) == ["", "self.tag == 1", "self.tag == 2", "self.tag == 3"]
    with threads(1):
        through(stack, torch.ones(3))
    report = seen.look()
    assert [compile.reason for compile in report.compiles] == [NUM_THREADS] * 4
    assert [(finding.text, finding.count) for finding in found(report, "guard")] == [
        (NUM_THREADS, 4)
    ]


def test_the_grad_mode_is_the_cause_also_for_modules_of_torch(seen: Seen) -> None:
    stack = [
        torch.compile(torch.nn.Sequential(kind()), backend="eager")
        for kind in (torch.nn.ReLU, torch.nn.GELU, torch.nn.SiLU)
    ]
    through(stack, torch.ones(3))
    seen.look()
    with torch.no_grad():
        through(stack, torch.ones(3))
    assert reasons(seen) == [GRAD_MODE] * 3


def test_more_layers_with_the_new_setting_than_with_the_old_change_nothing(seen: Seen) -> None:
    """Most entries then fail for the layer, and the entry of this layer for the setting."""
    old, new = layers(1), layers(6)[1:]
    through(old, torch.ones(3))
    with torch.no_grad():
        through(new, torch.ones(3))
        seen.look()
        through(old, torch.ones(3))
    assert reasons(seen) == [GRAD_MODE]


def test_the_entry_of_the_same_shape_gives_the_cause(seen: Seen) -> None:
    @torch.compile(backend="eager", dynamic=False)
    def scaled(x: torch.Tensor, factor: int) -> torch.Tensor:
        return x * factor

    scaled(torch.ones(3), 2)
    scaled(torch.ones(4), 2)
    scaled(torch.ones(3), 5)
    assert reasons(seen) == [
        "",
        "tensor 'x' size mismatch at index 0. expected 3, actual 4",
        "factor == 2",
    ]


def test_several_causes_are_several_findings_and_the_shared_one_comes_first(seen: Seen) -> None:
    @torch.compile(backend="eager", dynamic=False)
    def scaled(x: torch.Tensor, factor: int, flag: bool) -> torch.Tensor:
        return x * factor if flag else x / factor

    for factor, flag in ((2, True), (3, True), (4, False)):
        scaled(torch.ones(3), factor, flag)
    seen.look()
    scaled(torch.ones(3), 4, True)
    report = seen.look()
    (compile,) = report.compiles
    shared, *others = compile.reason.split("\n")
    assert (shared, others) == ("factor == 3", ["flag == False"])
    assert {(finding.text, finding.count) for finding in found(report, "guard")} == {
        ("factor == *", 1),
        ("flag == False", 1),
    }


def test_another_backend_is_the_cause_for_every_set_of_other_entries(seen: Seen) -> None:
    def job(x: torch.Tensor, factor: int) -> torch.Tensor:
        return x * factor

    torch.compile(job, backend="eager", dynamic=False)(torch.ones(3), 2)
    torch.compile(job, backend="eager", dynamic=False)(torch.ones(3), 3)
    seen.look()
    torch.compile(job, backend="aot_eager", dynamic=False)(torch.ones(3), 3)
    (compile,) = seen.compiles()
    assert compile.reason.startswith("BACKEND_MATCH failure") and "\n" not in compile.reason


def test_a_frame_at_its_limit_names_the_cause_and_not_the_newest_entry(seen: Seen) -> None:
    stack = layers(2)
    through(stack, torch.ones(3))
    with torch._dynamo.config.patch(recompile_limit=2), torch.no_grad():
        stack[0](torch.ones(3))
    report = seen.look()
    (fact,) = [fact for fact in report.facts if fact.kind == "latched_eager"]
    assert (fact.data["reason"], report.compiles[-1].reason) == (GRAD_MODE, GRAD_MODE)
