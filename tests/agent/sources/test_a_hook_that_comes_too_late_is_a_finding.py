"""A hook that is registered on a module inside compiled code never runs: that is a finding with the
module's class and the hook's place."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from compilewatch.recording.recorder import Recorder

from tests.agent.sources.conftest import Seen, found

FILE = "tests/agent/sources/test_a_hook_that_comes_too_late_is_a_finding.py"
ONES = torch.ones(3)


@pytest.fixture
def seen() -> Iterator[Seen]:
    watcher = Seen(here=("compilations", "late_hooks"))
    yield watcher
    watcher.uninstall()


class Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.inner(x))


class Ran:
    """A hook that counts how often it ran."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, *_: Any) -> None:
        self.times += 1


WHERE = f"{FILE}:{Ran.__call__.__code__.co_firstlineno} in __call__"


def findings(seen: Seen) -> list[tuple[str, str]]:
    for source in seen.sources:
        source.poll(seen.recorder)
    return [(one.text, one.where) for one in found(seen.look(), "hook_too_late")]


def test_each_late_hook_of_an_inner_module_is_reported_once(seen: Seen) -> None:
    assert seen.answers["late_hooks"] == ("yes", "")
    model, ran = Outer(), Ran()
    compiled = torch.compile(model, backend="eager")
    compiled(ONES)
    assert findings(seen) == []
    model.inner.register_forward_hook(ran)
    model.linear.register_forward_pre_hook(ran)
    compiled(ONES)
    assert ran.times == 0
    assert findings(seen) == [
        ("a forward hook of Inner, registered after the code was compiled, never runs", WHERE),
        ("a forward pre-hook of Linear, registered after the code was compiled, never runs", WHERE),
    ]
    assert findings(seen) == []


def test_a_module_that_a_compiled_function_calls_is_an_inner_module(seen: Seen) -> None:
    model, ran = Outer(), Ran()
    compiled = torch.compile(lambda x: model(x), backend="eager")
    compiled(ONES)
    model.register_full_backward_hook(ran)
    model.register_forward_hook(ran)
    compiled(ONES)
    assert ran.times == 0
    assert [text.split(",")[0] for text, _ in findings(seen)] == [
        "a forward hook of Outer",
        "a backward hook of Outer",
    ]


def test_a_module_of_torch_is_inside_the_code_that_torch_generates_around_it(seen: Seen) -> None:
    model, ran = torch.nn.Linear(3, 3), Ran()
    compiled = torch.compile(model, backend="eager")
    compiled(ONES)
    model.register_forward_hook(ran)
    compiled(ONES)
    assert ran.times == 0
    assert [text.split(",")[0] for text, _ in findings(seen)] == ["a forward hook of Linear"]


def test_a_hook_that_runs_is_no_finding(seen: Seen) -> None:
    """A hook of the compiled module itself, an earlier hook, and a hook in a torch that guards
    hooks."""
    model, itself, before, guarded = Outer(), Ran(), Ran(), Ran()
    model.inner.register_forward_hook(before)
    compiled = torch.compile(model, backend="eager")
    compiled(ONES)
    model.register_forward_hook(itself)
    compiled(ONES)
    with torch._dynamo.config.patch(skip_nnmodule_hook_guards=False):
        other = Outer()
        careful = torch.compile(other, backend="eager")
        careful(ONES)
        other.inner.register_forward_hook(guarded)
        careful(ONES)
    assert (itself.times, before.times, guarded.times) == (1, 2, 1)
    assert findings(seen) == []


def test_a_module_that_is_deleted_is_forgotten(seen: Seen) -> None:
    model = Outer()
    alive = weakref.ref(model)
    torch.compile(model, backend="eager")(ONES)
    findings(seen)
    torch._dynamo.reset()
    del model
    gc.collect()
    assert alive() is None
    Inner().register_forward_hook(Ran())
    assert findings(seen) == []


def test_nothing_of_torch_is_replaced() -> None:
    before = dict(vars(torch.nn.Module))
    watcher = Seen(Recorder(), here=("late_hooks",))
    assert dict(vars(torch.nn.Module)) == before
    watcher.uninstall()
