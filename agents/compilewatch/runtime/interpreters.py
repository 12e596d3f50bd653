"""Which of its interpreters a process runs this code in."""

from __future__ import annotations

import importlib
import sys
from typing import Any

_MODULES = ("_interpreters", "_xxsubinterpreters")


def in_main_interpreter() -> bool:
    """False in a subinterpreter (mod_wsgi has one per application): one that ends while a thread of it runs takes the process with it."""
    for name in _MODULES:
        try:
            module: Any = importlib.import_module(name)
            return bool(module.get_current() == module.get_main())
        except Exception:  # noqa: BLE001 - a Python without subinterpreters, or one that calls them otherwise
            continue
    return True


FREE_THREADED = (
    "Python runs without its global interpreter lock, and calls are counted without locks: they are not counted here. "
    "Start it with PYTHON_GIL=1 to count them"
)
"""Why calls are not timed there: what counts them is exact because one thread at a time runs Python."""


def one_thread_at_a_time() -> bool:
    """False in a free-threaded Python (3.13t and later) while its lock is off; an extension module may turn the lock on at its import."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())
