"""Monitors `torch.compile` in a running job.

Importing this package does no work and does not import torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compilewatch.agent import init, mark, ready, shutdown
    from compilewatch.instrument.api import compile, region, watch
    from compilewatch.numerics.eager_timing import baseline, eager_baseline
    from compilewatch.numerics.golden import golden
    from compilewatch.numerics.shadow_calls import shadow
    from compilewatch.version import __version__ as __version__

__all__ = [
    "baseline",
    "compile",
    "eager_baseline",
    "golden",
    "init",
    "mark",
    "ready",
    "region",
    "shadow",
    "shutdown",
    "watch",
]

_HOMES = {
    "__version__": "version",
    "init": "agent",
    "mark": "agent",
    "ready": "agent",
    "shutdown": "agent",
    "baseline": "numerics.eager_timing",
    "eager_baseline": "numerics.eager_timing",
    "golden": "numerics.golden",
    "shadow": "numerics.shadow_calls",
    "compile": "instrument.api",
    "region": "instrument.api",
    "watch": "instrument.api",
}


def __getattr__(name: str) -> Any:
    """Loads a public function on its first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    return value
