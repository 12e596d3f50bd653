"""What runs a callable: torch.compile, code that torch compiled ahead of time, TorchScript, JAX or plain Python; its class says which."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

from compilewatch.instrument.compile_mode import is_compiled

TORCH_COMPILE, EAGER, TORCHSCRIPT, AOTINDUCTOR, AOT, JAX = "torch.compile", "eager", "torchscript", "aotinductor", "aot", "jax"
AHEAD = (AOTINDUCTOR, AOT)
"""What was compiled before it can be called: each call of it runs compiled, or raises."""

_CLASSES = (
    ("torch.jit", ("ScriptFunction", "ScriptModule"), TORCHSCRIPT),
    ("torch._C", ("ScriptFunction", "ScriptMethod", "ScriptModule"), TORCHSCRIPT),
    ("torch", ("AOTICompiledModel",), AOTINDUCTOR),
    ("torch._dynamo.aot_compile", ("AOTCompiledFunction", "AOTCompiledModel"), AOT),
    ("jaxlib", ("PjitFunction", "PmapFunction"), JAX),
    ("jax", ("Compiled",), JAX),
)
"""The package a class comes from, its name, and what it means that a callable is of it."""


def runtime_of(target: Any) -> str:
    """The runtime that the target itself belongs to; empty for a plain callable, which may still call what is compiled."""
    if isinstance(target, functools.partial):
        return runtime_of(target.func)
    if is_compiled(target):
        return TORCH_COMPILE
    for kind in type(target).__mro__:
        for package, names, runtime in _CLASSES:
            if kind.__name__.rpartition(".")[2] in names and f"{kind.__module__}.".startswith(f"{package}."):
                return runtime
    return ""


def is_script_function(target: Any) -> bool:
    """Whether it is an object of torch's that only torch can make, and so nothing can stand in for it but a function."""
    return type(target).__name__.endswith("ScriptFunction") and runtime_of(target) == TORCHSCRIPT


def usual_runtime() -> str:
    """What runs plain callables of which nothing is known yet."""
    return TORCH_COMPILE if "torch._dynamo" in sys.modules else EAGER


def called_by_watch(target: Any, runtime: str) -> Any:
    """What a wrapper calls for the target."""
    if runtime == TORCH_COMPILE and hasattr(target, "_torchdynamo_orig_callable"):
        return importlib.import_module("compilewatch.instrument.kill_switch").routed_function(target)
    if runtime != TORCHSCRIPT:
        return target
    return importlib.import_module("compilewatch.sources.runtimes.torchscript").settling(target)


def handed_out(wrapper: Callable[..., Any], target: Any, runtime: str) -> Callable[..., Any]:
    """What the job gets: under JAX something that steps aside while JAX traces its caller, since then nothing is computed."""
    if runtime != JAX:
        return wrapper
    computes = importlib.import_module("compilewatch.sources.runtimes.jax").nothing_traced()

    def watched(*args: Any, **kwargs: Any) -> Any:
        return wrapper(*args, **kwargs) if computes() else target(*args, **kwargs)

    return watched
