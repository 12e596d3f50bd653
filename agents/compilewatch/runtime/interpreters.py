"""Interpreter checks: subinterpreters and free-threaded Python."""

from __future__ import annotations

import importlib
import sys
from typing import Any

_MODULES = ("_interpreters", "_xxsubinterpreters")


def is_main_interpreter() -> bool:
    """Returns False in a subinterpreter (mod_wsgi has one per application).

    A subinterpreter that ends while one of its threads runs ends the whole process.
    """
    for name in _MODULES:
        try:
            module: Any = importlib.import_module(name)
            return bool(module.get_current() == module.get_main())
        except Exception:  # noqa: BLE001 - no subinterpreters, or an unknown API
            continue
    return True


FREE_THREADED = (
    "Python runs without its global interpreter lock, so calls are not counted: the counters "
    "rely on that lock. Start Python with PYTHON_GIL=1 to count calls"
)
"""Why calls are not timed: the counters are exact only while one thread at a time runs Python."""


def is_gil_enabled() -> bool:
    """Returns False in a free-threaded Python (3.13t or later) while the GIL is off.

    Importing an extension module may turn the GIL on.
    """
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())
