"""A call that computes tensors eager inside compiled code, where Dynamo never looks code up, is
partial; a call that computes none there is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from tests.agent.sources.conftest import Seen
from tests.agent.sources.test_a_call_counts_as_compiled_or_eager import (
    one_region,
    unsplittable,
    watched,
)

WEIGHT = torch.ones(3, requires_grad=True)


def block(x: torch.Tensor) -> torch.Tensor:
    x = (x * WEIGHT).relu()
    torch._dynamo.graph_break()
    return x * 2


def checkpointed(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(block, x, use_reentrant=False).sum() + (x * 3).sum()


@torch.compiler.disable
def tripled(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@torch.compiler.disable
def inspected(x: torch.Tensor) -> torch.Tensor:
    assert x.shape
    return x


@torch.compiler.disable
def counted(x: torch.Tensor) -> int:
    return x.dim()


def with_eager_work(x: torch.Tensor) -> torch.Tensor:
    return tripled(x + 1) + 1


def with_eager_work_at_its_end(x: torch.Tensor) -> torch.Tensor:
    return tripled(x + 1)


def with_eager_work_under_a_name(x: torch.Tensor) -> torch.Tensor:
    y = tripled(x + 1)
    return y  # noqa: RET504 - the part after the break returns the variable


def with_a_look_at_a_tensor(x: torch.Tensor) -> torch.Tensor:
    return inspected(x) + 1


def with_a_number(x: torch.Tensor) -> torch.Tensor:
    return x + counted(x + 1)


def with_a_print(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    print("step")
    return x * 2


def with_a_skipped_part(x: torch.Tensor) -> torch.Tensor:
    return unsplittable(x + 1) * 2


def inner(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def skipped_around_a_compiled_part(x: torch.Tensor) -> torch.Tensor:
    try:
        with torch.no_grad():
            for _ in range(2):
                torch._dynamo.graph_break()
                x = inner(x) + 1
        return x
    finally:
        pass


def counts(
    seen: Seen, function: Callable[..., Any], *lengths: int
) -> tuple[int, int, dict[str, int]]:
    """Compiled, partial and eager calls after the calls that compiled."""
    call = watched(function, dynamic=False)
    for length in lengths or (3,):
        call(torch.ones(length))
    seen.look()
    for _ in range(5):
        for length in lengths or (3,):
            call(torch.ones(length))
    region = one_region(seen)
    return region.compiled, region.partial, region.eager_by


WITH_WORK = [
    checkpointed,
    with_eager_work,
    with_eager_work_at_its_end,
    with_eager_work_under_a_name,
    with_a_skipped_part,
]


@pytest.mark.parametrize("function", WITH_WORK)
def test_a_call_with_eager_work_is_partial(watching: Seen, function: Callable[..., Any]) -> None:
    assert counts(watching, function) == (0, 5, {})


def test_a_function_that_is_compiled_again_holds_the_same_work(watching: Seen) -> None:
    assert counts(watching, with_eager_work, 3, 4, 5) == (0, 15, {})


def test_a_skipped_frame_with_compiled_parts_makes_calls_partial(
    watching: Seen,
) -> None:
    assert counts(watching, skipped_around_a_compiled_part) == (0, 5, {})


@pytest.mark.parametrize("function", [with_a_look_at_a_tensor, with_a_number, with_a_print, inner])
def test_a_call_whose_breaks_compute_no_tensor_stays_compiled(
    watching: Seen, function: Callable[..., Any]
) -> None:
    assert counts(watching, function) == (5, 0, {})
