"""A golden batch that fails is repeated before the failure is confirmed, and compiled with an empty
cache to find out whether the cached code is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.wire.messages import Report
from torch import Tensor
from torch._inductor.codegen.cpp import CppOverrides, CppVecOverrides

Window = Callable[[], Report]


def test_a_failure_that_then_passes_is_not_confirmed(window: Window) -> None:
    calls: list[int] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
        def run(*args: Any) -> Any:
            calls.append(1)
            return tuple(one * (2.0 if len(calls) == 1 else 1.0) for one in graph.forward(*args))

        return run

    torch._dynamo.reset()
    found = compilewatch.golden(
        "flaky", torch.compile(lambda x: x + 1.0, backend=backend), torch.randn(8)
    )
    assert found.state == "not compared"
    assert found.text.startswith("it failed once and passed when it was repeated (output is off by")
    assert len(calls) == 2


def test_code_that_is_wrong_only_in_the_cache_is_named(
    window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    batch = torch.randn(256)

    def scale(x: Tensor) -> Tensor:
        return torch.exp(x) * 0.5

    torch._dynamo.reset()
    with monkeypatch.context() as patch:
        for overrides in (CppOverrides, CppVecOverrides):
            right = overrides.exp
            patch.setattr(
                overrides, "exp", staticmethod(lambda x, right=right: f"({right(x)} + {right(x)})")
            )
        torch.compile(scale)(batch)  # leaves wrong code in the cache
    torch._dynamo.reset()
    found = compilewatch.golden("cached", torch.compile(scale), batch)
    assert found.state == "failed"
    assert found.text.endswith("compiled with an empty cache it passes: the cached code is wrong")
    kinds = [
        (finding.kind, finding.text)
        for finding in window().findings
        if finding.kind == "golden_cached_code"
    ]
    assert kinds == [
        (
            "golden_cached_code",
            "cached: fails with cached code, passes when compiled with an empty cache",
        )
    ]
    torch._dynamo.reset()


def test_a_compiler_that_is_also_wrong_with_an_empty_cache_is_no_fault_of_the_cache(
    window: Window, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    for overrides in (CppOverrides, CppVecOverrides):
        right = overrides.exp
        monkeypatch.setattr(
            overrides, "exp", staticmethod(lambda x, right=right: f"({right(x)} + {right(x)})")
        )
    torch._dynamo.reset()
    found = compilewatch.golden(
        "compiler", torch.compile(lambda x: torch.exp(x) * 0.5), torch.randn(256)
    )
    assert found.state == "failed"
    assert "empty cache" not in found.text
    assert not [finding for finding in window().findings if finding.kind == "golden_cached_code"]
    torch._dynamo.reset()
