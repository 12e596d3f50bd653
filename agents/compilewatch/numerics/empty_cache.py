"""The same callable compiled once more with an empty cache: whether a wrong result is the compiler's, or that of code from a cache."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

from compilewatch.instrument.compile_mode import context_of
from compilewatch.numerics.execution import graphs_captured
from compilewatch.numerics.isolated_run import Batch, Result, run
from compilewatch.numerics.reference_models import Target, in_place

_FOLDERS = ("fresh_cache", "fresh_inductor_cache")
"""torch's own ways to compile into a folder that is new and goes again; the second is the name of older releases."""
_INNER = ("_torchdynamo_orig_backend", "_torchdynamo_orig_callable")
MAX_WRAPPED = 10


def run_with_empty_cache(torch: Any, target: Target, batch: Batch, grads: bool) -> Result | None:
    """What a compilation of the same callable gives that no cache answers; None where it cannot be had: another compiler than inductor,
    or a frame that torch does not compile once more, such as one at its recompile limit."""
    compiler, folder = _compiler_of(torch, target), _folder()
    if compiler is None or folder is None:
        return None

    def compile_again(graph: Any, inputs: Any) -> Any:
        """A backend that no cache entry was made with: torch compiles again for it."""
        return compiler(graph, inputs)

    compiled = torch.compile(
        target.eager, backend=compile_again, dynamic=getattr(compiler, "dynamic", None)
    )
    before = graphs_captured()
    with suppress(Exception), folder():
        found = run(torch, compiled, batch, target.module, grads=grads)
        return found if graphs_captured() > before else None
    return None


def _compiler_of(torch: Any, target: Target) -> Any:
    """inductor as the callable uses it, with its mode and options."""
    held: Any = getattr(context_of(in_place(target.compiled)), "callback", None)
    for _ in range(MAX_WRAPPED):
        if type(held).__name__ == "_TorchCompileInductorWrapper":
            return held
        held = next(
            (
                inner
                for inner in (getattr(held, name, None) for name in _INNER)
                if inner is not None
            ),
            None,
        )
    return None


def _folder() -> Callable[[], AbstractContextManager[Any]] | None:
    utilities = importlib.import_module("torch._inductor.utils")
    return next(
        (
            found
            for found in (getattr(utilities, name, None) for name in _FOLDERS)
            if callable(found)
        ),
        None,
    )
