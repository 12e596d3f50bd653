"""Runtime detection: finds the runtime of a callable by its class.

Runtimes are torch.compile, code that torch compiled ahead of time, TorchScript, JAX and plain
Python."""

from __future__ import annotations

import functools
from typing import Any

from compilewatch.instrument.compile_mode import is_compiled
from compilewatch.recording.runtime_names import AOT, AOTINDUCTOR, JAX, TORCH_COMPILE, TORCHSCRIPT

_CLASSES = (
    ("torch.jit", ("ScriptFunction", "ScriptModule"), TORCHSCRIPT),
    ("torch._C", ("ScriptFunction", "ScriptMethod", "ScriptModule"), TORCHSCRIPT),
    ("torch", ("AOTICompiledModel",), AOTINDUCTOR),
    ("torch._dynamo.aot_compile", ("AOTCompiledFunction", "AOTCompiledModel"), AOT),
    ("jaxlib", ("PjitFunction", "PmapFunction"), JAX),
    ("jax", ("Compiled",), JAX),
)
"""Package of a class, names of the class, and the runtime of its objects."""


def runtime_of(target: Any) -> str:
    """The runtime of the target itself. Empty for a plain callable, which may still call
    compiled code."""
    if isinstance(target, functools.partial):
        return runtime_of(target.func)
    if is_compiled(target):
        return TORCH_COMPILE
    for kind in type(target).__mro__:
        for package, names, runtime in _CLASSES:
            if kind.__name__.rpartition(".")[2] in names and f"{kind.__module__}.".startswith(
                f"{package}."
            ):
                return runtime
    return ""


def is_script_function(target: Any) -> bool:
    """True for a TorchScript function. Only torch can create such an object, so its proxy must
    be a function."""
    return type(target).__name__.endswith("ScriptFunction") and runtime_of(target) == TORCHSCRIPT
