"""What a callable that came out of `torch.compile` says about how it was compiled, read without importing torch."""

from __future__ import annotations

from typing import Any


def runtime_of(target: Any) -> str:
    """`torch.compile` if torch compiled the target itself, else empty: decided at its first call."""
    return "torch.compile" if _context_of(target) is not None or hasattr(target, "_torchdynamo_orig_callable") else ""


def mode_of(target: Any) -> str:
    """The mode behind the options torch resolved, or the name of another backend; `default` when there is nothing to read."""
    backend: Any = getattr(_context_of(target), "callback", None)
    while getattr(backend, "_torchdynamo_orig_backend", None) is not None:
        backend = backend._torchdynamo_orig_backend
    name = getattr(backend, "compiler_name", None) or getattr(backend, "__name__", None)
    if name is None:
        return "default"
    if name != "inductor":
        return str(name)
    config = getattr(backend, "config", {})
    tuned, graphs = config.get("max_autotune"), config.get("triton.cudagraphs")
    if tuned:
        return "max-autotune" if graphs else "max-autotune-no-cudagraphs"
    return "reduce-overhead" if graphs else "default"


def _context_of(target: Any) -> Any:
    """torch's own context of a compiled callable: an attribute of a module, a free variable of a function."""
    context = getattr(target, "dynamo_ctx", None)
    if context is None and hasattr(target, "_torchdynamo_orig_callable"):
        names = getattr(getattr(target, "__code__", None), "co_freevars", ())
        if "self" in names:
            context = target.__closure__[names.index("self")].cell_contents
    return context
