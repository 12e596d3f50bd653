"""Where facts come from: one source per origin, each installed when the module that it binds is first imported."""

from __future__ import annotations

import importlib
from typing import Protocol

from compilewatch.recorder import Recorder

Answer = tuple[str, str]
"""A capability: "yes", "partly" or "no", and why; found by trying, never by a version number."""

SOURCES = (
    "compilations:Compilations",
    "limits:Limits",
    "fallbacks:Fallbacks",
    "compiled_calls:CompiledCalls",
    "cuda_graphs:CudaGraphs",
    "gpu_time:GpuTime",
    "memory:Memory",
)
"""Module and class of each source, in the order of installation."""


class Source(Protocol):
    """Inherit from it and override; whatever raises is counted as an internal error and never reaches the job."""

    name: str
    """The key of this source in the capability table."""
    module: str
    """The module whose first import installs the source; empty: installed at once. It is never imported for the source's sake."""

    def install(self, recorder: Recorder) -> Answer:
        """Binds to torch and says what can be seen. Runs right after `module` was executed, or at once if it is there already."""
        ...

    def poll(self, recorder: Recorder) -> Answer | None:
        """Called about once a second on the agent's thread, from the installation on; answers when the capability changed."""
        return None

    def uninstall(self) -> None:
        """Takes back what is still ours; also called when `install` raised."""


def load(entry: str) -> Source:
    """The source that an entry of `SOURCES` names."""
    module, name = entry.split(":")
    source: Source = getattr(importlib.import_module(f"compilewatch.sources.{module}"), name)()
    return source
