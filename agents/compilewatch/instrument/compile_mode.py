"""Compile mode: reads how `torch.compile` compiled a callable, without an import of torch."""

from __future__ import annotations

import re
from typing import Any

MAX_WRAPPERS = 10
_FUNCTION = re.compile(r"<function (\S+) at 0x[0-9a-f]+>")
_OBJECT = re.compile(r"<(\S+) object at 0x[0-9a-f]+>")


def is_compiled(target: Any) -> bool:
    """True if `torch.compile` returned the target.

    The result of `torch.compiler.disable` looks the same, but only code inside it may compile."""
    context = context_of(target)
    if (
        type(context).__name__ == "DisableContext"
        or getattr(target, "_torchdynamo_disable", False) is True
    ):
        return False
    return context is not None or hasattr(target, "_torchdynamo_orig_callable")


def is_disabled(target: Any) -> bool:
    """True if `torch.compiler.disable` wraps the forward of the module's class, recursively.

    On a function or a single module it does not count: `torch.compile` removes it from its
    argument and compiles."""
    forward = getattr(type(target), "forward", None)
    return (
        getattr(forward, "_torchdynamo_disable", False) is True
        and getattr(forward, "_torchdynamo_disable_recursive", True) is not False
    )


def mode_of(target: Any) -> str:
    """The mode behind the options that torch resolved, or the name of another backend. `default`
    if unknown."""
    backend, mode = backend_of(getattr(context_of(target), "callback", None))
    return mode or backend or "default"


def backend_of(callback: Any) -> tuple[str, str]:
    """The name of the compiler behind torch's callback, and the inductor mode. Empty if unknown."""
    for _ in range(MAX_WRAPPERS):
        inner = getattr(callback, "_torchdynamo_orig_backend", None)
        if inner is None:
            break
        callback = inner
    name = getattr(callback, "compiler_name", None) or getattr(callback, "__name__", None)
    if callback is None or name != "inductor":
        return (
            "" if callback is None else _strip_address(str(name or type(callback).__name__))
        ), ""
    config = getattr(callback, "config", None)
    config = config if isinstance(config, dict) else {}
    tuned, graphs = config.get("max_autotune"), config.get("triton.cudagraphs")
    if tuned:
        return "inductor", "max-autotune" if graphs else "max-autotune-no-cudagraphs"
    return "inductor", "reduce-overhead" if graphs else "default"


def _strip_address(name: str) -> str:
    """The name of a class or function. Torch may use the `repr` of an object, with an address
    that differs in each process."""
    match = _FUNCTION.search(name) or _OBJECT.search(name)
    return match[1].rpartition(".")[2] if match else name


def context_of(target: Any) -> Any:
    """Torch's context of a compiled callable: an attribute of a module, a free variable of a
    function."""
    context = getattr(target, "dynamo_ctx", None)
    if context is None and hasattr(target, "_torchdynamo_orig_callable"):
        names = getattr(getattr(target, "__code__", None), "co_freevars", ())
        if "self" in names:
            context = target.__closure__[names.index("self")].cell_contents
    return context
