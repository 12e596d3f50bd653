"""In one process, calls run eager for different causes: each region reports its own cause, and code
without a graph is not compiled code."""

from __future__ import annotations

from collections.abc import Callable

import compilewatch
import torch

from tests.agent.sources.conftest import Seen
from tests.agent.sources.test_a_call_counts_as_compiled_or_eager import (
    doubled,
    unsplittable,
    watched,
)


@torch.compiler.disable
def work(x: torch.Tensor) -> torch.Tensor:
    return x * 3


def behind_a_disabled_call(x: torch.Tensor) -> torch.Tensor:
    return work(x)


def limited(x: torch.Tensor) -> torch.Tensor:
    return x - 1


def returned(x: torch.Tensor) -> torch.Tensor:
    return x


def eager_calls(seen: Seen) -> dict[str, tuple[int, int, dict[str, int]]]:
    found: dict[str, tuple[int, int, dict[str, int]]] = {}
    for region in seen.look().regions:
        compiled, unknown, eager = found.get(region.name, (0, 0, {}))
        merged = {
            cause: eager.get(cause, 0) + region.eager_by.get(cause, 0)
            for cause in {*eager, *region.eager_by}
        }
        found[region.name] = compiled + region.compiled, unknown + region.unknown, merged
    return found


def call_all(calls: list[Callable[..., torch.Tensor]], *lengths: int) -> None:
    for call in calls:
        for length in lengths:
            call(torch.ones(length))


def test_limit_stance_skip_disabled_and_no_graph_stay_separate(watching: Seen) -> None:
    graphless = [watched(behind_a_disabled_call), watched(returned)]
    compiled, skipped, over = (
        watched(doubled),
        watched(unsplittable),
        watched(limited, dynamic=False),
    )
    off = watched(torch.nn.Linear(3, 3), disable=True, name="off")
    with torch._dynamo.config.patch(recompile_limit=1):
        call_all([*graphless, compiled, skipped, off], 3)
        call_all([over], 3, 4)
        watching.look()
        for _ in range(4):
            call_all([*graphless, compiled, skipped, off], 3)
            call_all([over], 3, 5)
        with torch.compiler.set_stance("force_eager"):
            call_all([compiled], 3, 3)
    assert eager_calls(watching) == {
        "behind_a_disabled_call": (0, 0, {"no_graph": 4}),
        "returned": (0, 0, {"no_graph": 4}),
        "doubled": (4, 0, {"stance": 2}),
        "unsplittable": (0, 0, {"skip": 4}),
        "limited": (4, 0, {"limit": 4}),
        "off": (0, 0, {"disabled": 4}),
    }


def test_a_region_meets_code_without_a_graph_that_was_compiled_before_it(watching: Seen) -> None:
    inner = torch.compile(behind_a_disabled_call, backend="eager")
    inner(torch.ones(3))
    around = compilewatch.watch(lambda x: inner(x), name="around")
    call_all([around], 3, 3, 3)
    assert eager_calls(watching) == {"around": (0, 0, {"no_graph": 3})}


def test_one_graph_in_a_call_makes_it_compiled(watching: Seen) -> None:
    inner, graph = torch.compile(returned, backend="eager"), torch.compile(doubled, backend="eager")
    both = compilewatch.watch(lambda x: graph(inner(x)), name="both")
    call_all([both], 3, 3, 3)
    assert eager_calls(watching) == {"both": (2, 0, {})}


def test_after_a_reset_nothing_is_known_about_a_region(watching: Seen) -> None:
    call = watched(behind_a_disabled_call)
    call_all([call], 3, 3)
    torch._dynamo.reset()
    watching.look()
    call_all([call], 3, 3, 3)
    assert eager_calls(watching) == {"behind_a_disabled_call": (0, 0, {"no_graph": 2})}
