"""Tells when a module has been imported for the first time, without importing anything."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

IMPORTED: dict[str, tuple[float, float]] = {}
"""When the import of a module that somebody waited for began and ended, in Unix seconds."""


class ImportHook:
    """Sits first on `sys.meta_path`; asks the finders behind it, and wraps the loader of a module somebody waits for. It and its loader
    derive from nothing: `importlib.abc` would cost as much to load as half the agent."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Callable[[], None]]] = {}

    def when_imported(self, module: str, then: Callable[[], None]) -> None:
        """Calls `then` at once if the module is there, else right after its first import; `then` must not raise."""
        if fully_imported(module):
            then()
            return
        self._waiting.setdefault(module, []).append(then)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Waits no longer."""
        self._waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for every module that nobody waits for: then the import goes on as ever."""
        if name not in self._waiting:
            return None
        finders = list(sys.meta_path)
        # Only those behind it: two hooks that wait for one module would ask each other for ever.
        for finder in finders[finders.index(self) + 1 :] if self in finders else []:
            find = getattr(finder, "find_spec", None)
            if find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    ours: Any = _Loader(spec.loader, self, name)
                    spec.loader = ours
                return spec
        return None

    def imported(self, name: str) -> None:
        """The module was executed: whoever waited is called."""
        for then in self._waiting.pop(name, []):
            then()


def fully_imported(name: str) -> bool:
    """Whether the module is there and its code has run to the end."""
    module = sys.modules.get(name)
    return module is not None and not getattr(
        getattr(module, "__spec__", None), "_initializing", False
    )


class _Loader:
    """The real loader, followed by a call; everything else about the module is the real loader's."""

    def __init__(self, loader: Any, hook: ImportHook, name: str) -> None:
        self._loader = loader
        self._hook = hook
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The real loader's module; the loader itself is put back first."""
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module's code, then says so."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        began = time.time()
        self._loader.exec_module(module)
        IMPORTED.setdefault(self._name, (began, time.time()))
        self._hook.imported(self._name)
