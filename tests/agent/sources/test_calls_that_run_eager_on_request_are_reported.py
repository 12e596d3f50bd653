"""A stance, a switch that turns compiling off, and frames that torch skips without a message: calls
count as eager by that cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import compilewatch
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.agent.sources.conftest import Seen, eager_fallbacks
from tests.agent.sources.test_a_call_counts_as_compiled_or_eager import doubled, one_region, watched


class Passing(TorchDispatchMode):
    def __torch_dispatch__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return function(*args, **(kwargs or {}))


def poll(seen: Seen) -> dict[str, tuple[str, str]]:
    return {
        source.name: answer for source in seen.sources if (answer := source.poll(seen.recorder))
    }


def test_a_stance_counts_exactly_while_it_lasts(watching: Seen) -> None:
    call = watched(doubled)
    call(torch.ones(3))
    watching.look()
    for _ in range(4):
        call(torch.ones(3))
        with torch.compiler.set_stance("force_eager"):
            call(torch.ones(3))
    region = one_region(watching)
    assert (region.compiled, region.eager_by, region.unknown) == (4, {"stance": 4}, 0)


def test_a_frozen_process_runs_known_code_compiled_and_the_rest_eager(watching: Seen) -> None:
    call = watched(doubled, dynamic=False)
    call(torch.ones(3))
    watching.look()
    with torch.compiler.set_stance("eager_on_recompile"):
        for length in (3, 4, 5):
            call(torch.ones(length))
    region = one_region(watching)
    assert (region.compiled, region.eager_by) == (1, {"stance": 2})


def test_a_stance_set_before_the_agent_is_found() -> None:
    with torch.compiler.set_stance("force_eager"):
        seen = Seen()
        try:
            assert seen.answers["eager_switches"] == ("yes", "")
        finally:
            seen.uninstall()


def test_the_setting_that_disables_counts_as_disabled(watching: Seen) -> None:
    call = watched(doubled)
    with torch._dynamo.config.patch(disable=True):
        poll(watching)
        for _ in range(3):
            call(torch.ones(3))
        assert one_region(watching).eager_by == {"disabled": 3}


def test_a_frame_that_met_the_switch_stays_eager_after_it(watching: Seen) -> None:
    call = watched(doubled)
    with torch._dynamo.config.patch(disable=True):
        call(torch.ones(3))
    poll(watching)
    (fact,) = eager_fallbacks(watching.look())
    assert (fact.data["frame"], fact.data["cause"], fact.data["reason"]) == (
        "doubled",
        "disabled",
        "Dynamo tracing is disabled",
    )
    for _ in range(3):
        call(torch.ones(3))
    assert one_region(watching).eager_by == {"disabled": 3}


def test_the_environment_variable_counts_as_disabled(
    watching: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    call = compilewatch.watch(torch.compile(doubled), name="f")
    poll(watching)
    for _ in range(3):
        call(torch.ones(3))
    assert one_region(watching).eager_by == {"disabled": 3}


def test_a_frame_first_called_inside_a_dispatch_mode_is_skipped_permanently(watching: Seen) -> None:
    call = watched(doubled)
    with Passing():
        call(torch.ones(3))
    (fact,) = eager_fallbacks(watching.look())
    assert (fact.data["frame"], fact.data["cause"]) == ("doubled", "skip")
    assert "dispatch mode" in fact.data["reason"]
    for _ in range(3):
        call(torch.ones(3))
    assert one_region(watching).eager_by == {"skip": 3}


def test_library_code_that_torch_never_compiles_makes_no_call_eager(watching: Seen) -> None:
    import logging

    def step(x: torch.Tensor) -> torch.Tensor:
        x = x * 2
        torch._dynamo.graph_break()
        logging.getLogger("tests").debug("step")
        return x

    call = watched(step)
    for _ in range(3):
        call(torch.ones(3))
    report = watching.look()
    assert eager_fallbacks(report) == []
    assert {cause for region in report.regions for cause in region.eager_by} == set()


def test_a_function_without_tensors_is_not_counted_as_eager(watching: Seen) -> None:
    call = watched(lambda items: len(items))
    for _ in range(4):
        call([1, 2])
    assert eager_fallbacks(watching.look()) == []


def test_a_callable_that_torch_returns_uncompiled_is_disabled_permanently(
    watching: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    calls = [
        compilewatch.compile(doubled, name="by environment"),
        compilewatch.compile(doubled, name="by option", disable=True),
    ]
    monkeypatch.undo()
    for call in calls:
        call(torch.ones(3))
    regions = watching.look().regions
    assert [(region.calls, region.sampled, region.eager_by) for region in regions] == [
        (1, 1, {"disabled": 1})
    ] * 2


def test_a_module_with_a_disabled_class_is_disabled_although_torch_looks_it_up(
    watching: Seen,
) -> None:
    class Layer(torch.nn.Linear):
        forward = torch.compiler.disable(torch.nn.Linear.forward)

    call = watched(Layer(3, 3))
    for _ in range(4):
        call(torch.ones(3))
    region = one_region(watching)
    assert (region.eager_by, region.compiled, region.unknown) == (
        {"disabled": region.sampled},
        0,
        0,
    )
    assert region.sampled >= 3


def test_a_mark_that_torch_compile_removes_disables_nothing(watching: Seen) -> None:
    ran: list[int] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            ran.append(1)
            return graph.forward(*args)

        return run

    for target in (torch.compiler.disable(doubled), torch.compiler.disable(torch.nn.Linear(3, 3))):
        ran.clear()
        call = compilewatch.compile(target, backend=backend)
        for _ in range(4):
            call(torch.ones(3))
        region = one_region(watching)
        assert len(ran) == 4
        assert (region.eager_by, region.compiled) == ({}, region.sampled)


def test_a_callable_disabled_without_its_callees_is_counted_by_its_lookups(
    watching: Seen,
) -> None:
    call = watched(torch.compiler.disable(doubled, recursive=False))
    for _ in range(4):
        call(torch.ones(3))
    assert "disabled" not in one_region(watching).eager_by
