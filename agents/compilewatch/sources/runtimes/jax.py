"""JAX: duration and persistent-cache answer of each compilation, from `jax.monitoring`."""

from __future__ import annotations

import importlib
import itertools
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.sources import Capability, Source
from compilewatch.sources.dynamo.user_frames import find_caller
from compilewatch.wire.messages import Compile

TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWERING = "/jax/core/compile/jaxpr_to_mlir_module_duration"
BACKEND = "/jax/core/compile/backend_compile_duration"
HIT, MISS = "/jax/compilation_cache/cache_hits", "/jax/compilation_cache/cache_misses"
SAVED = "/jax/compilation_cache/compile_time_saved_sec"
LOADED = "/jax/compilation_cache/cache_retrieval_time_sec"
LISTENERS = (
    ("register_event_duration_secs_listener", "unregister_event_duration_listener", "_on_duration"),
    ("register_event_listener", "unregister_event_listener", "_on_event"),
)
LIMITS = "JAX reports neither the cause of a recompile nor the start of a compilation"
MAX_NAMES = 10_000
MAX_TRACED = 1_000


@dataclass
class PendingCompile(threading.local):
    """Events of the current compilation of a thread; the backend's duration is the last event."""

    traced: dict[str, float] = field(default_factory=dict)
    """Seconds by function; JAX may trace several functions before it compiles the first one."""
    lowering: float = 0.0
    loaded: float = 0.0
    saved: float | None = None
    cache: str = ""


class Jax(Source):
    """Listens to the public `jax.monitoring`, after the job itself has imported JAX."""

    name = "jax"
    module = "jax"

    def __init__(self) -> None:
        self._listeners: list[tuple[str, Callable[..., None]]] = []
        self._is_active = False
        self._pending = PendingCompile()
        self._names: set[str] = set()
        self._numbers = itertools.count()

    def install(self, recorder: Recorder) -> Capability:
        self._recorder, self._barrier = recorder, FaultBarrier(recorder.record_internal_error)
        monitoring = importlib.import_module("jax.monitoring")
        missing = [register for register, _, _ in LISTENERS if not hasattr(monitoring, register)]
        if not self._listeners:
            for register, unregister, method in LISTENERS:
                if register not in missing:
                    listener = getattr(self, method)
                    getattr(monitoring, register)(listener)
                    self._listeners.append((unregister, listener))
        self._is_active = True
        if "register_event_duration_secs_listener" in missing:
            return "no", "this JAX has no jax.monitoring.register_event_duration_secs_listener"
        return "partly", "; ".join(
            [LIMITS, *(f"this JAX has no jax.monitoring.{name}" for name in missing)]
        )

    def uninstall(self) -> None:
        """Removes the listeners; older JAX cannot remove them, so they stay and do nothing."""
        self._is_active = False
        monitoring = sys.modules.get("jax.monitoring")
        listeners, self._listeners = self._listeners, []
        for unregister, listener in listeners:
            remove = getattr(monitoring, unregister, None)
            if remove is not None:
                with self._barrier:
                    remove(listener)

    def _on_event(self, event: str, **about: Any) -> None:
        if self._is_active and event in (HIT, MISS):
            self._pending.cache = "hit" if event == HIT else "miss"

    def _on_duration(self, event: str, seconds: float, **about: Any) -> None:
        if not self._is_active:
            return
        with self._barrier:
            pending, name = self._pending, _function_of(about)
            if event == TRACE:
                if len(pending.traced) >= MAX_TRACED:
                    pending.traced.clear()
                pending.traced[name] = float(seconds)
            elif event == LOWERING:
                pending.lowering = float(seconds)
            elif event == LOADED:
                pending.loaded = float(seconds)
            elif event == SAVED:
                pending.saved = max(0.0, float(seconds))
            elif event == BACKEND:
                self._report_compile(name, float(seconds))

    def _report_compile(self, name: str, backend: float) -> None:
        pending, place = self._pending, find_caller()
        phases = {
            "trace": pending.traced.pop(name, 0.0),
            "lowering": pending.lowering,
            "cache_load": min(pending.loaded, backend),
            "xla": max(0.0, backend - pending.loaded),
        }
        seconds = {phase: round(value, 6) for phase, value in phases.items() if value > 0}
        self._recorder.record_compile(
            Compile(
                at=time.time(),
                id=f"jax/{next(self._numbers)}",
                kind="recompile" if name in self._names else "first",
                outcome="ok",
                frame=name,
                file=place.file if place else "",
                line=place.line if place else 0,
                seconds={"total": round(sum(seconds.values()), 6), **seconds},
                cache={"jax": pending.cache} if pending.cache else {},
                saved=pending.saved,
                backend="xla",
            )
        )
        if len(self._names) < MAX_NAMES:
            self._names.add(name)
        pending.lowering, pending.loaded, pending.saved, pending.cache = 0.0, 0.0, None, ""


def _function_of(about: dict[str, Any]) -> str:
    """The function name, `step` in `jit(step)`; empty for older JAX, which does not name it."""
    name = str(about.get("fun_name") or "")
    return name[4:-1] if name.startswith("jit(") and name.endswith(")") else name
