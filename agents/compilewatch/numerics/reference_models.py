"""What a golden batch goes through: the compiled callable, the same uncompiled, and a copy of that in a higher precision."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from compilewatch.errors import NotCompared
from compilewatch.instrument.kill_switch import innermost
from compilewatch.instrument.object_proxy import WATCHED, stood_for

SHARE_OF_MEMORY = 0.5
"""A copy takes at most so much of what is free: it is for looking, and the job needs the rest."""
MAX_WRAPPED = 10
PARALLEL = ("DistributedDataParallel", "DataParallel")
"""Modules of torch that pass a call on to the compiled module inside them."""


class Target(NamedTuple):
    """The two callables, and the module whose parameters and buffers they use, if one is known."""

    compiled: Callable[..., Any]
    eager: Callable[..., Any]
    module: Any
    method: str
    """Which method of the module `eager` is; empty for the module itself."""


def unwatched(fn: Any) -> Any:
    """What `watch` was given: a comparison is no traffic, and is not counted as such."""
    for _ in range(MAX_WRAPPED):
        if WATCHED in getattr(fn, "__dict__", ()) and hasattr(fn, "__wrapped__"):
            fn = fn.__wrapped__
        elif WATCHED in vars(type(fn)) and stood_for(fn) is not fn:
            fn = stood_for(fn)
        else:
            break
    return fn


def target_of(torch: Any, fn: Any, reference: Any) -> Target:
    """The callables behind what people hold in their hands; raises NotCompared where the uncompiled one cannot be had."""
    compiled = _served(torch, unwatched(fn))
    eager = unwatched(reference) if reference is not None else _original(torch, compiled)
    owner = eager if isinstance(eager, torch.nn.Module) else getattr(eager, "__self__", None)
    if not isinstance(owner, torch.nn.Module):
        return Target(compiled, eager, None, "")
    if reference is None and type(compiled).__name__ in PARALLEL:
        return Target(compiled, eager, owner, "")
    inside = [name or "it" for name, part in owner.named_modules() if hasattr(part, "_orig_mod")]
    if inside and reference is None:
        raise NotCompared(
            f"`{inside[0]}` inside it is compiled by itself: pass the same without torch.compile as reference="
        )
    return Target(compiled, eager, owner, "" if eager is owner else eager.__name__)


def compiled_methods(module: Any) -> dict[str, tuple[Any, Any]]:
    """What `module.forward = torch.compile(module.forward)` leaves: by name, what the module itself holds and what that was made of."""
    if hasattr(module, "_orig_mod"):  # torch's own module holds such a forward too
        return {}
    held = {name: one for name, one in vars(module).items() if callable(one)}
    return {
        name: (one, innermost(unwatched(one)))
        for name, one in held.items()
        if "_torchdynamo_orig_callable" in _attributes(one)
    }


def held_by(target: Target) -> list[Any]:
    """The tensors that it brings itself."""
    return [] if target.module is None else [*target.module.parameters(), *target.module.buffers()]


def in_place(compiled: Any) -> Any:
    """What runs where a module was compiled in place by `Module.compile()`."""
    found = getattr(compiled, "_compiled_call_impl", None)
    return compiled if found is None else found


def _attributes(one: Any) -> Any:
    return getattr(unwatched(one), "__dict__", ())


def _served(torch: Any, compiled: Any) -> Any:
    """Of a module that holds a compiled forward, that forward: what a call of the module runs where no hook is around it."""
    if (
        not isinstance(compiled, torch.nn.Module)
        or compiled._forward_hooks
        or compiled._forward_pre_hooks
    ):
        return compiled
    return (
        unwatched(compiled_methods(compiled)["forward"][0])
        if "forward" in compiled_methods(compiled)
        else compiled
    )


def _original(torch: Any, compiled: Any) -> Any:
    if type(compiled).__name__ in PARALLEL and hasattr(
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
        module = innermost(compiled)
        module = None if module is compiled else module
    if module is None:
        raise NotCompared(
            "it did not come out of torch.compile: pass what it is to be compared with as reference="
        )
    return module


@contextmanager
def uncompiled(torch: Any, module: Any) -> Iterator[None]:
    """Within it, modules that were compiled in place by `Module.compile()`, or hold compiled methods, run as they were written."""
    parts = [] if module is None else list(module.modules())
    kept = [
        (one, one._compiled_call_impl)
        for one in parts
        if getattr(one, "_compiled_call_impl", None) is not None
    ]
    methods = [(one, name, *both) for one in parts for name, both in compiled_methods(one).items()]
    try:
        for one, _ in kept:
            one._compiled_call_impl = None
        for one, name, _, written in methods:
            vars(one)[name] = written
        yield
    finally:
        for one, implementation in kept:
            one._compiled_call_impl = implementation
        for one, name, compiled, _ in methods:
            vars(one)[name] = compiled


def precise(torch: Any, target: Target, dtype: Any) -> tuple[Callable[..., Any], Any] | None:
    """The uncompiled callable in that precision, and its module; None where a copy would need too much memory."""
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
    """Bytes that are free there; what cannot be asked has room enough."""
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
