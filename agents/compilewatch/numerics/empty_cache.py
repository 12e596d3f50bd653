"""Recompilation with an empty cache: separates a wrong cache entry from a wrong compiler."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

from compilewatch.instrument.compile_mode import context_of
from compilewatch.numerics.execution import count_captured_graphs
from compilewatch.numerics.isolated_run import Batch, Result, run_isolated
from compilewatch.numerics.reference_models import Target, compiled_impl_of

_FOLDERS = ("fresh_cache", "fresh_inductor_cache")
"""torch's context managers for a temporary cache folder; older releases have the second one."""
_INNER = ("_torchdynamo_orig_backend", "_torchdynamo_orig_callable")
MAX_WRAPPED = 10


def run_with_empty_cache(torch: Any, target: Target, batch: Batch, grads: bool) -> Result | None:
    """Runs the callable after a compilation that no cache answers.

    None if that is impossible: a compiler other than inductor, or a frame that torch does not
    compile again, such as a frame at its recompile limit."""
    compiler, fresh_folder = _compiler_of(torch, target), _fresh_folder()
    if compiler is None or fresh_folder is None:
        return None

    def compile_again(graph: Any, inputs: Any) -> Any:
        """A backend without cache entries, so that torch compiles again."""
        return compiler(graph, inputs)

    compiled = torch.compile(
        target.eager, backend=compile_again, dynamic=getattr(compiler, "dynamic", None)
    )
    before = count_captured_graphs()
    with suppress(Exception), fresh_folder():
        found = run_isolated(torch, compiled, batch, target.module, grads=grads)
        return found if count_captured_graphs() > before else None
    return None


def _compiler_of(torch: Any, target: Target) -> Any:
    """The inductor backend of the callable, with its mode and options."""
    backend: Any = getattr(context_of(compiled_impl_of(target.compiled)), "callback", None)
    for _ in range(MAX_WRAPPED):
        if type(backend).__name__ == "_TorchCompileInductorWrapper":
            return backend
        backend = next(
            (
                inner
                for inner in (getattr(backend, name, None) for name in _INNER)
                if inner is not None
            ),
            None,
        )
    return None


def _fresh_folder() -> Callable[[], AbstractContextManager[Any]] | None:
    utilities = importlib.import_module("torch._inductor.utils")
    return next(
        (
            found
            for found in (getattr(utilities, name, None) for name in _FOLDERS)
            if callable(found)
        ),
        None,
    )
