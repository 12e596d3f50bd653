"""A framework that unwraps a watched module and calls its methods causes compilations without
calls: that is one finding."""

from __future__ import annotations

import sys

import compilewatch
import pytest
import torch

from tests.agent.sources.conftest import Seen, found

FILE = "tests/agent/sources/test_a_watched_module_that_nothing_calls_is_a_finding.py"
ROWS = torch.ones(2, 4)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Linear(4, 1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.net(rows)

    def training_step(self, rows: torch.Tensor) -> torch.Tensor:
        return self.net(rows).pow(2).mean()


class Scored(Model):
    """A separate class, so that no test reads compilations of another test."""


def fit(watched: torch.nn.Module, rows: torch.Tensor = ROWS) -> None:
    """Like Lightning: compiles the step of the inner module, and calls that."""
    inner = watched._orig_mod
    inner.compiled_step = watched.dynamo_ctx(inner.training_step)
    inner.compiled_step(rows)


def reported(watching: Seen) -> list[tuple[str, str, int]]:
    return [
        (one.text, one.where, one.count) for one in found(watching.look(), "wrapper_not_entered")
    ]


def test_a_step_that_bypasses_the_wrapper_is_reported_once(watching: Seen) -> None:
    watched = compilewatch.compile(Model(), backend="eager", name="model")
    fit(watched)
    line = Model.training_step.__code__.co_firstlineno
    text = (
        "torch compiles Model.training_step, but nothing calls the watched module `model` "
        "directly: calls of `model` are not counted"
    )
    assert reported(watching) == [(text, f"{FILE}:{line} in training_step", 1)]
    fit(watched, torch.ones(3, 4))
    assert reported(watching) == []


def test_a_forward_that_bypasses_the_wrapper_is_reported(watching: Seen) -> None:
    watched = compilewatch.compile(Model(), backend="eager", name="forward alone")
    watched.forward(ROWS)
    model = Model().double()
    model.forward = torch.compile(model.forward, backend="eager")
    kept = compilewatch.watch(model, name="its own forward")
    model(ROWS.double())
    assert [text.split("`")[1] for text, _, _ in reported(watching)] == [
        "its own forward",
        "forward alone",
    ]
    assert isinstance(kept, Model)


def test_a_module_whose_wrapper_is_called_is_no_finding(watching: Seen) -> None:
    watched = compilewatch.compile(Model(), backend="eager", name="called first")
    watched(ROWS)
    fit(watched)
    later = compilewatch.compile(Model(), backend="eager", name="called in the same window")
    fit(later)
    later(ROWS)
    inside = compilewatch.compile(Model(), backend="eager", name="in a container")
    torch.nn.Sequential(inside)(ROWS)
    assert reported(watching) == []


def test_a_call_that_raises_has_used_the_wrapper(watching: Seen) -> None:
    watched = compilewatch.compile(Model(), backend="eager", name="raises")
    with pytest.raises(RuntimeError):
        watched(torch.ones(2, 5))
    fit(watched)
    assert reported(watching) == []


def test_a_module_traced_by_an_outer_compilation_is_no_finding(watching: Seen) -> None:
    watched = compilewatch.watch(Model(), name="inner")
    outer = compilewatch.compile(torch.nn.Sequential(watched), backend="eager", name="outer")
    outer(ROWS)

    def step(model: torch.nn.Module, rows: torch.Tensor) -> torch.Tensor:
        return model(rows)

    torch.compile(step, backend="eager")(watched, ROWS)
    assert reported(watching) == []


def test_a_golden_batch_before_traffic_is_no_finding(watching: Seen) -> None:
    watched = compilewatch.compile(Scored().eval(), backend="aot_eager", name="golden")
    assert compilewatch.golden("first", watched, (ROWS,)).state == "passed"
    assert reported(watching) == []
    assert "compilewatch.numerics.golden" in sys.modules
