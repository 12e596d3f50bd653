"""Watches `torch.compile` in a running job; importing this does no work and loads no torch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compilewatch.client import init, mark, ready, shutdown
    from compilewatch.parity.baseline import baseline
    from compilewatch.parity.golden import golden
    from compilewatch.parity.shadow import shadow
    from compilewatch.watching import compile, region, watch

__version__ = "0.1.0"
__all__ = ["baseline", "compile", "golden", "init", "mark", "ready", "region", "shadow", "shutdown", "watch"]

_HOMES = {
    "init": "client",
    "mark": "client",
    "ready": "client",
    "shutdown": "client",
    "baseline": "parity.baseline",
    "golden": "parity.golden",
    "shadow": "parity.shadow",
    "compile": "watching",
    "region": "watching",
    "watch": "watching",
}


def __getattr__(name: str) -> Any:
    """Loads the public functions when the first of them is used."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    return value
