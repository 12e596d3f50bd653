"""A source is installed when its module is first imported, and the import is what it would have been without us."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from compilewatch.hooks import ImportHook


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "late_module.py").write_text("def f():\n    return 1\n")
    (tmp_path / "broken_module.py").write_text("raise LookupError('its own')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "late_module"
    sys.modules.pop("late_module", None)


def test_it_is_told_once_after_the_import_and_leaves_no_trace(module: str) -> None:
    hook, told = ImportHook(), []
    hook.when_imported(module, lambda: told.append(sys.modules[module].f()))
    assert told == []
    loaded = importlib.import_module(module)
    assert told == [1]
    importlib.reload(loaded)
    assert told == [1]
    assert type(loaded.__loader__).__name__ == type(loaded.__spec__.loader).__name__ == "SourceFileLoader"  # type: ignore[union-attr]
    assert inspect.getsource(loaded.f) == "def f():\n    return 1\n"
    hook.remove()
    assert hook not in sys.meta_path


def test_what_is_imported_already_is_told_at_once() -> None:
    told: list[int] = []
    hook = ImportHook()
    hook.when_imported("json", lambda: told.append(1))
    assert told == [1] and hook not in sys.meta_path


def test_a_module_that_fails_to_import_fails_as_ever(module: str) -> None:
    hook, told = ImportHook(), []
    hook.when_imported("broken_module", lambda: told.append(1))
    hook.when_imported("no_such_module_anywhere", lambda: told.append(2))
    with pytest.raises(LookupError, match="its own"):
        importlib.import_module("broken_module")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_anywhere")
    assert told == []
    hook.remove()
