"""The runtime of a plain callable follows from its calls: a callable that never meets compiled code
is eager, a callable that met compiled code once is no longer eager."""

from __future__ import annotations

import compilewatch
import torch

from tests.agent.sources.conftest import Seen


def eager(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def runtimes(watching: Seen) -> dict[str, tuple[str, int, int]]:
    return {
        region.name: (region.runtime, region.unknown, region.sampled)
        for region in watching.look().regions
    }


def test_an_eager_function_is_eager_in_a_process_that_compiles(watching: Seen) -> None:
    compiled = compilewatch.compile(lambda x: x + 1, backend="eager", name="compiled")
    watched, around = (
        compilewatch.watch(eager),
        compilewatch.watch(lambda x: compiled(x), name="around"),
    )
    for _ in range(4):
        around(watched(torch.ones(3)))
    assert runtimes(watching) == {
        "eager": ("eager", 0, 0),
        "around": ("torch.compile", 0, 3),
        "compiled": ("torch.compile", 0, 3),
    }


def test_a_callable_kept_from_torch_compile_is_eager_unless_it_calls_compiled_code(
    watching: Seen,
) -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    kept = compilewatch.watch(torch.compiler.disable(lambda x: x * 2), name="kept")
    module = compilewatch.watch(torch.compiler.disable(torch.nn.Linear(3, 3)), name="module")
    around = compilewatch.watch(torch.compiler.disable(lambda x: compiled(x)), name="around")
    for _ in range(3):
        around(module(kept(torch.ones(3))))
    assert runtimes(watching) == {
        "kept": ("eager", 0, 0),
        "module": ("eager", 0, 0),
        "around": ("torch.compile", 0, 2),
    }


def test_a_block_is_no_callable(watching: Seen) -> None:
    with compilewatch.region("backward"):
        pass
    assert runtimes(watching)["backward"][0] == "torch.compile"


def test_one_meeting_with_compiled_code_decides_permanently(watching: Seen) -> None:
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    watched = compilewatch.watch(lambda x, fast: compiled(x) if fast else x, name="sometimes")
    watched(torch.ones(3), False)
    assert runtimes(watching)["sometimes"][0] == "eager"
    for _ in range(2):
        watched(torch.ones(3), True)
    assert runtimes(watching)["sometimes"][0] == "torch.compile"
    watched(torch.ones(3), False)
    assert runtimes(watching)["sometimes"] == ("torch.compile", 1, 1)
