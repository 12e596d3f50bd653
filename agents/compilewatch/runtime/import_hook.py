"""Import hook: a callback after the first import of a module. The hook imports nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

IMPORT_TIMES: dict[str, tuple[float, float]] = {}
"""Start and end of the import of each awaited module, in Unix seconds."""


class ImportHook:
    """A meta path finder that delegates to the finders behind it and wraps the loader of an awaited
    module.

    The hook and its loader have no base class: loading `importlib.abc` would cost half as much as
    the agent.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, list[Callable[[], None]]] = {}

    def when_imported(self, module: str, then: Callable[[], None]) -> None:
        """Calls `then` immediately if the module is imported, else right after its first import;
        `then` must not raise.
        """
        if is_fully_imported(module):
            then()
            return
        self._waiting.setdefault(module, []).append(then)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Cancels all callbacks."""
        self._waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns None for every module without a callback: its import continues unchanged."""
        if name not in self._waiting:
            return None
        finders = list(sys.meta_path)
        # Ask only the finders behind this one: two hooks for one module would otherwise recurse
        # endlessly.
        for finder in finders[finders.index(self) + 1 :] if self in finders else []:
            find = getattr(finder, "find_spec", None)
            if find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    loader: Any = _Loader(spec.loader, self, name)
                    spec.loader = loader
                return spec
        return None

    def on_imported(self, name: str) -> None:
        """Calls the callbacks of a module after its code ran."""
        for then in self._waiting.pop(name, []):
            then()


def is_fully_imported(name: str) -> bool:
    """Returns whether the module is imported and its code has run completely."""
    module = sys.modules.get(name)
    return module is not None and not getattr(
        getattr(module, "__spec__", None), "_initializing", False
    )


class _Loader:
    """Delegates to the real loader and calls the hook after the module's code ran."""

    def __init__(self, loader: Any, hook: ImportHook, name: str) -> None:
        self._loader = loader
        self._hook = hook
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Delegates the creation of the module to the real loader."""
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        """Restores the real loader, runs the module's code, then calls the hook."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        start = time.time()
        self._loader.exec_module(module)
        IMPORT_TIMES.setdefault(self._name, (start, time.time()))
        self._hook.on_imported(self._name)
