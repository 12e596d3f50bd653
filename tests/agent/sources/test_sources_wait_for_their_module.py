"""A source is installed when its module is first imported, and the import behaves as without the
agent."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from compilewatch.runtime.import_hook import ImportHook
from compilewatch.sources import SOURCES, load

from tests.agent.programs import run


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "late_module.py").write_text("def f():\n    return 1\n")
    (tmp_path / "broken_module.py").write_text("raise LookupError('its own')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "late_module"
    sys.modules.pop("late_module", None)


def test_a_listener_is_called_once_after_the_import_and_leaves_no_trace(module: str) -> None:
    hook, told = ImportHook(), []
    hook.when_imported(module, lambda: told.append(sys.modules[module].f()))
    assert told == []
    loaded = importlib.import_module(module)
    assert told == [1]
    importlib.reload(loaded)
    assert told == [1]
    assert (
        type(loaded.__loader__).__name__
        == type(loaded.__spec__.loader).__name__
        == "SourceFileLoader"
    )  # type: ignore[union-attr]
    assert inspect.getsource(loaded.f) == "def f():\n    return 1\n"
    hook.remove()
    assert hook not in sys.meta_path


def test_two_listeners_for_one_module_are_both_called_once(module: str) -> None:
    hooks, told = (ImportHook(), ImportHook()), []
    for hook in hooks:
        hook.when_imported(module, lambda: told.append(1))
    loaded = importlib.import_module(module)
    assert told == [1, 1]
    assert (
        type(loaded.__loader__).__name__
        == type(loaded.__spec__.loader).__name__
        == "SourceFileLoader"
    )  # type: ignore[union-attr]
    for hook in hooks:
        hook.remove()


def test_a_listener_for_an_imported_module_is_called_at_once() -> None:
    told: list[int] = []
    hook = ImportHook()
    hook.when_imported("json", lambda: told.append(1))
    assert told == [1] and hook not in sys.meta_path


def test_a_module_that_fails_to_import_fails_as_without_the_agent(module: str) -> None:
    hook, told = ImportHook(), []
    hook.when_imported("broken_module", lambda: told.append(1))
    hook.when_imported("no_such_module_anywhere", lambda: told.append(2))
    with pytest.raises(LookupError, match="its own"):
        importlib.import_module("broken_module")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_anywhere")
    assert told == []
    hook.remove()


def test_the_list_of_sources_matches_each_source() -> None:
    assert [(load(listed).name, load(listed).module) for listed in SOURCES] == [
        (name, module) for _, name, module in SOURCES
    ]


LOADED = """
import sys
from compilewatch import agent as client
assert client.init(model="m", endpoint="file:/dev/null")
print(sorted(name for name in sys.modules if name.startswith("compilewatch.sources.") and name != "compilewatch.sources.registry"))
"""


def test_a_start_loads_no_source_before_its_module() -> None:
    done = run(LOADED)
    assert done.stderr == ""
    # The source of host memory waits for no module, and is loaded on the agent's thread with its
    # names of torch.
    assert set(ast.literal_eval(done.stdout)) <= {
        "compilewatch.sources.host.memory",
        "compilewatch.runtime.torch_internals",
    }


def test_every_hook_that_waits_for_one_module_is_called(tmp_path: Path) -> None:
    (tmp_path / "awaited_by_two.py").write_text("value = 1\n")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from compilewatch.runtime.import_hook import IMPORT_TIMES, ImportHook\n"
        "called, hooks = [], [ImportHook(), ImportHook(), ImportHook()]\n"
        "for number, hook in enumerate(hooks):\n"
        "    hook.when_imported('awaited_by_two', lambda number=number: called.append(number))\n"
        "import awaited_by_two\n"
        "assert sorted(called) == [0, 1, 2], called\n"
        "began, ended = IMPORT_TIMES['awaited_by_two']\n"
        "assert began <= ended\n"
    )
    done = run(program, str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
