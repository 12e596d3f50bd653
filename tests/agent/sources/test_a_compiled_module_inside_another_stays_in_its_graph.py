"""Torch traces through a compiled module that it meets while tracing, even if that module is
watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.instrument.dynamo_skip import skip_frames

from tests.agent.sources.conftest import Seen


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()


def in_place(block: Block) -> Block:
    block.compile(backend="eager")
    return block


WAYS: dict[str, Callable[[Block], Any]] = {
    "torch": lambda block: torch.compile(block, backend="eager"),
    "watched": lambda block: compilewatch.watch(torch.compile(block, backend="eager")),
    "compilewatch": lambda block: compilewatch.compile(block, backend="eager"),
    "watched before": lambda block: torch.compile(compilewatch.watch(block), backend="eager"),
    "compiled in place": in_place,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_outer_graph_holds_both(way: str, watching: Seen) -> None:
    skip_frames()
    model = torch.nn.Sequential(WAYS[way](Block()), WAYS[way](Block()))
    outer = compilewatch.compile(model, backend="eager", fullgraph=True, name="outer")
    x = torch.ones(2, 4)
    once = outer(x)
    report = watching.look()
    assert not report.findings
    assert len(report.compiles) == 1
    torch.testing.assert_close(once, model(x))


def test_a_module_that_must_not_be_compiled_still_breaks_the_graph(watching: Seen) -> None:
    disabled = compilewatch.watch(torch.compiler.disable(Block()))
    outer = torch.compile(torch.nn.Sequential(disabled, Block()), backend="eager")
    outer(torch.ones(2, 4))
    assert {finding.kind for finding in watching.look().findings} == {"graph_break"}
