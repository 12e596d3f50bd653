"""The agent's modules form no import cycle, regardless of the import's place. The package root
stays small, and modules loaded by name are listed."""

import ast
import graphlib
from pathlib import Path

from tests.architecture.tree import REPOSITORY, python_files

ROOT = REPOSITORY / "agents" / "compilewatch"
MOST_IN_ROOT = 10
REGISTRIES = {"__init__.py", "lazy_modules.py", "sources/__init__.py"}
"""Modules that name other modules in strings: the public names, rarely used modules, and the
sources."""
METRICS = "wire/otlp.py"
"""Metric names such as `compilewatch.errors`, which is also a module."""


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def imports_of(tree: ast.Module, known: set[str]) -> set[str]:
    """The modules of the agent that a module imports anywhere in its code; `from package import
    module` imports the module."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {
                f"{node.module}.{alias.name}"
                if f"{node.module}.{alias.name}" in known
                else node.module
                for alias in node.names
            }
    return found & known


def graph_of(folder: Path) -> dict[str, set[str]]:
    files = {module_of(file): file for file in python_files(folder)}
    graph = {
        name: imports_of(ast.parse(file.read_text()), set(files)) - {name}
        for name, file in files.items()
    }
    del graph[
        "compilewatch"
    ]  # it names the modules of the public functions, for types only; no module of the agent may import it
    return graph


def test_no_module_imports_itself_through_others() -> None:
    graphlib.TopologicalSorter(graph_of(ROOT)).prepare()


def test_a_cycle_is_found() -> None:
    graph = graph_of(ROOT)
    graph["compilewatch.wire.sketch"] = {"compilewatch.agent"}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        assert "compilewatch.wire.sketch" in error.args[1]
    else:
        raise AssertionError("no cycle was found")


def test_nothing_imports_the_root() -> None:
    assert [
        name
        for name, imports in graph_of(ROOT).items()
        if "compilewatch" in imports and name != "compilewatch.__main__"
    ] == []


def test_the_root_has_only_these_modules() -> None:
    assert len([file for file in ROOT.iterdir() if file.suffix == ".py"]) <= MOST_IN_ROOT


def test_only_the_registries_name_modules_in_strings() -> None:
    known = {module_of(file) for file in python_files(ROOT)} - {"compilewatch"}
    found = []
    for file in python_files(ROOT):
        name = str(file.relative_to(ROOT))
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and node.value in known
                and name not in {*REGISTRIES, METRICS}
            ):
                found.append(f"{name}:{node.lineno}")
    assert found == []
