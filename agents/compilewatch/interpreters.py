"""Which of its interpreters a process runs this code in."""

from __future__ import annotations

import importlib
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
