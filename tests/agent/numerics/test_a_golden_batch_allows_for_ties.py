"""Whole numbers of a golden batch may differ by ties: with scores, by the distance of the scores;
without scores, in a few places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.numerics.tolerance import MAX_TIES, compare_argmax
from compilewatch.wire.messages import Report
from torch import Tensor

Window = Callable[[], Report]
Wrong = Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]


def compiled_with(fn: Callable[..., Any], wrong: Wrong) -> Any:
    """Compiled by a backend that gets the outputs wrong."""

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        return lambda *args: wrong(tuple(graph.forward(*args)))

    torch._dynamo.reset()
    return torch.compile(fn, backend=backend)


def flipped(several: int) -> Wrong:
    """The first `several` places contain the next number."""

    def flip(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        *others, places = outputs
        changed = places.clone()
        changed.view(-1)[:several] = (changed.view(-1)[:several] + 1) % 8
        return (*others, changed)

    return flip


@pytest.mark.parametrize(
    ("several", "state"),
    [(0, "passed"), (1, "passed"), (MAX_TIES, "passed"), (MAX_TIES + 1, "failed"), (32, "failed")],
)
def test_without_scores_a_few_places_may_differ(window: Window, several: int, state: str) -> None:
    fn = compiled_with(lambda x: x.argmax(-1), flipped(several))
    assert compilewatch.golden("places", fn, torch.randn(32, 8)).state == state


def test_in_a_small_output_no_place_may_differ(window: Window) -> None:
    assert (
        compilewatch.golden(
            "one", compiled_with(lambda x: x.argmax(-1), flipped(1)), torch.randn(4, 8)
        ).state
        == "failed"
    )


def test_flags_have_no_ties(window: Window) -> None:
    def turn(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        flags = outputs[0].clone()
        flags.view(-1)[:1] = ~flags.view(-1)[:1]
        return (flags,)

    assert (
        compilewatch.golden("flags", compiled_with(lambda x: x > 0, turn), torch.randn(32, 8)).state
        == "failed"
    )


def test_with_scores_many_ties_pass_and_one_place_that_is_no_tie_fails(window: Window) -> None:
    def scored(x: Tensor) -> tuple[Tensor, Tensor]:
        scores = x * 1.0
        return scores, scores.argmax(-1)

    batch = torch.randn(64, 8)
    close = batch.clone()
    best = close.argmax(-1)
    close[torch.arange(64), (best + 1) % 8] = close[torch.arange(64), best] - 1e-7

    def nudge(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        scores = outputs[0] + torch.randn(64, 8) * 1e-6
        return scores, scores.argmax(-1)

    def jump(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return outputs[0], flipped(1)((outputs[1],))[0]

    assert compilewatch.golden("ties", compiled_with(scored, nudge), close).state == "passed"
    found = compilewatch.golden("no tie", compiled_with(scored, jump), batch)
    assert found.state == "passed", (
        "a place that the compiled scores do not name is compared without scores"
    )
    many = compilewatch.golden(
        "no ties",
        compiled_with(scored, lambda outputs: (outputs[0], flipped(9)((outputs[1],))[0])),
        batch,
    )
    assert many.state == "failed"


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_the_margin_is_the_distance_of_the_two_scores(dtype: torch.dtype) -> None:
    scores = torch.tensor([[1.0, 0.75, 0.0], [0.0, 2.0, 1.0]])
    nudged = torch.tensor([[0.75, 1.0, 0.0], [0.0, 2.0, 1.0]])
    found = compare_argmax(
        torch, "output", nudged.argmax(-1).to(dtype), scores.argmax(-1).to(dtype), (nudged, scores)
    )
    assert found is not None
    assert (found.error, found.allowed) == (0.25, 0.5)
    assert (
        compare_argmax(torch, "output", nudged.argmax(-1), scores.argmax(-1) + 1, (nudged, scores))
        is None
    )
