"""Reference models: the eager callable behind a compiled one, and its higher-precision copy."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from compilewatch.errors import ComparisonError
from compilewatch.instrument.kill_switch import find_original
from compilewatch.instrument.object_proxy import WATCHED_ATTRIBUTE, unwrap_proxy

SHARE_OF_MEMORY = 0.5
"""Maximum share of the free memory that a copy may take; the job needs the rest."""
MAX_WRAPPED = 10
PARALLEL_MODULES = ("DistributedDataParallel", "DataParallel")
"""Modules of torch that forward a call to the compiled module inside them."""


class Target(NamedTuple):
    """The compiled and the eager callable, and the module whose parameters they use, if any."""

    compiled: Callable[..., Any]
    eager: Callable[..., Any]
    module: Any
    method: str
    """Name of the module's method that `eager` is; empty for the module itself."""


def unwrap(fn: Any) -> Any:
    """Removes the wrapper of `watch`, because a comparison is not traffic."""
    for _ in range(MAX_WRAPPED):
        if WATCHED_ATTRIBUTE in getattr(fn, "__dict__", ()) and hasattr(fn, "__wrapped__"):
            fn = fn.__wrapped__
        elif WATCHED_ATTRIBUTE in vars(type(fn)) and unwrap_proxy(fn) is not fn:
            fn = unwrap_proxy(fn)
        else:
            break
    return fn


def target_of(torch: Any, fn: Any, reference: Any) -> Target:
    """Finds both callables behind `fn`; raises ComparisonError if the uncompiled one is unknown."""
    compiled = _forward_of(torch, unwrap(fn))
    eager = unwrap(reference) if reference is not None else _original(torch, compiled)
    owner = eager if isinstance(eager, torch.nn.Module) else getattr(eager, "__self__", None)
    if not isinstance(owner, torch.nn.Module):
        return Target(compiled, eager, None, "")
    if reference is None and type(compiled).__name__ in PARALLEL_MODULES:
        return Target(compiled, eager, owner, "")
    inside = [name or "it" for name, part in owner.named_modules() if hasattr(part, "_orig_mod")]
    if inside and reference is None:
        raise ComparisonError(
            f"`{inside[0]}` inside it is compiled separately: "
            "pass the same callable without torch.compile as reference="
        )
    return Target(compiled, eager, owner, "" if eager is owner else eager.__name__)


def compiled_methods(module: Any) -> dict[str, tuple[Any, Any]]:
    """Compiled methods that the instance holds, by name, each with the method it was compiled from.

    `module.forward = torch.compile(module.forward)` creates such a method."""
    if hasattr(module, "_orig_mod"):  # torch's own OptimizedModule holds such a forward too
        return {}
    callables = {name: one for name, one in vars(module).items() if callable(one)}
    return {
        name: (one, find_original(unwrap(one)))
        for name, one in callables.items()
        if "_torchdynamo_orig_callable" in _attributes(one)
    }


def tensors_of(target: Target) -> list[Any]:
    """Parameters and buffers of the target's module."""
    return [] if target.module is None else [*target.module.parameters(), *target.module.buffers()]


def compiled_impl_of(compiled: Any) -> Any:
    """The compiled implementation if the module was compiled in place by `Module.compile()`."""
    found = getattr(compiled, "_compiled_call_impl", None)
    return compiled if found is None else found


def _attributes(one: Any) -> Any:
    return getattr(unwrap(one), "__dict__", ())


def _forward_of(torch: Any, compiled: Any) -> Any:
    """The compiled forward that a call of the module runs, unless the module has a hook."""
    if (
        not isinstance(compiled, torch.nn.Module)
        or compiled._forward_hooks
        or compiled._forward_pre_hooks
    ):
        return compiled
    return (
        unwrap(compiled_methods(compiled)["forward"][0])
        if "forward" in compiled_methods(compiled)
        else compiled
    )


def _original(torch: Any, compiled: Any) -> Any:
    if type(compiled).__name__ in PARALLEL_MODULES and hasattr(
        getattr(compiled, "module", None), "_orig_mod"
    ):
        return compiled.module._orig_mod
    if isinstance(compiled, torch.nn.Module):
        module = getattr(compiled, "_orig_mod", None)
        if module is None and any(
            getattr(part, "_compiled_call_impl", None) is not None for part in compiled.modules()
        ):
            module = compiled
    else:
        module = find_original(compiled)
        module = None if module is compiled else module
    if module is None:
        raise ComparisonError(
            "it is not a result of torch.compile: pass the callable to compare with as reference="
        )
    return module


@contextmanager
def run_uncompiled(torch: Any, module: Any) -> Iterator[None]:
    """Context in which modules compiled in place, or with compiled methods, run as eager."""
    parts = [] if module is None else list(module.modules())
    implementations = [
        (one, one._compiled_call_impl)
        for one in parts
        if getattr(one, "_compiled_call_impl", None) is not None
    ]
    methods = [(one, name, *both) for one in parts for name, both in compiled_methods(one).items()]
    try:
        for one, _ in implementations:
            one._compiled_call_impl = None
        for one, name, _, written in methods:
            vars(one)[name] = written
        yield
    finally:
        for one, implementation in implementations:
            one._compiled_call_impl = implementation
        for one, name, compiled, _ in methods:
            vars(one)[name] = compiled


def in_precision(torch: Any, target: Target, dtype: Any) -> tuple[Callable[..., Any], Any] | None:
    """Copies the eager callable in that precision; None if the copy would need too much memory."""
    if target.module is None:
        return target.eager, None
    tensors = [*target.module.parameters(), *target.module.buffers()]
    needed = sum(one.numel() for one in tensors) * torch.finfo(dtype).bits // 8
    devices = {one.device for one in tensors}
    if any(needed > SHARE_OF_MEMORY * _free(torch, device) for device in devices):
        return None
    module = copy.deepcopy(target.module).to(dtype)
    return (getattr(module, target.method) if target.method else module), module


def _free(torch: Any, device: Any) -> float:
    """Free bytes of the device; infinite if unknown."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    try:
        return (
            float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
            if device.type == "cpu"
            else float("inf")
        )
    except (ValueError, OSError, AttributeError):
        return float("inf")
