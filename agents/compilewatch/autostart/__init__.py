"""Autostart: start of the agent in each Python process below `compilewatch run`.

The process starts the agent at its first import of a library that compiles."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

from compilewatch.agent import AGENT, init
from compilewatch.config import is_endpoint_set
from compilewatch.instrument.api import is_watched, watch_compiled
from compilewatch.lazy_modules import CACHE_SAVE_LOAD, require
from compilewatch.recording.recorder import RECORDER
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.import_hook import ImportHook
from compilewatch.runtime.interpreters import is_main_interpreter

SAVES_CACHES = "COMPILEWATCH_SAVES_CACHES"
"""Environment variable with the folder where `compilewatch cache save` collects the caches of a
process."""
_WATCHES_ITSELF = "vllm"
"""vLLM reads the code behind its compiled callables, and the agent is a plugin of vLLM."""


def start() -> None:
    """Starts the agent and watches `torch.compile`.

    Does nothing without an endpoint: the launcher has reported the missing setting."""
    with FaultBarrier(RECORDER.record_internal_error):
        if not is_main_interpreter():
            return
        if os.environ.get(SAVES_CACHES):
            require(CACHE_SAVE_LOAD).save_at_exit(os.environ[SAVES_CACHES])
        if is_endpoint_set():
            ImportHook().when_imported("torch", _watch_every_compile)
            if AGENT.recorder.config is None:
                init()


def _watch_every_compile() -> None:
    """Makes `torch.compile` return a watched callable, named after its argument.

    `Module.compile` calls `torch.compile`."""
    with FaultBarrier(RECORDER.record_internal_error):
        torch = sys.modules["torch"]
        torch.compile = _watching(torch.compile)  # type: ignore[attr-defined]


def _watching(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(model: Any = None, **options: Any) -> Any:
        compiled = original(model, **options)
        if _is_called_by(sys._getframe(1).f_globals, _WATCHES_ITSELF):
            return compiled
        if model is not None:
            return _once(compiled, model, options)
        # The decorator of torch calls torch.compile again with the function; older releases do not.
        return lambda given: _once(compiled(given), given, options)

    return compile


def _is_called_by(names: dict[str, Any], package: str) -> bool:
    return str(names.get("__name__", "")).partition(".")[0] == package


def _once(compiled: Any, given: Any, options: dict[str, Any]) -> Any:
    with FaultBarrier(RECORDER.record_internal_error):
        return compiled if is_watched(compiled) else watch_compiled(compiled, given, options)
    return compiled
