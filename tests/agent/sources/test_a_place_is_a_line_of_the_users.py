"""The place of a compilation: the user's own line, or none if an engine compiles on its own in a
process that it started."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from compilewatch.sources.dynamo.user_frames import Place, find_user_caller, is_vllm_file

ASK = "def ask(users_place):\n    return users_place()\n"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package called vllm, installed like any other."""
    folder = tmp_path / "site-packages" / "vllm"
    folder.mkdir(parents=True)
    module = ModuleType("vllm")
    module.__file__ = str(folder / "__init__.py")
    monkeypatch.setitem(sys.modules, "vllm", module)
    return folder


def asked_from(path: Path) -> Callable[..., Place | None]:
    names: dict[str, Callable[..., Place | None]] = {}
    exec(compile(ASK, str(path), "exec"), names)
    return names["ask"]


def test_files_of_the_engine_are_its_own_and_neighbouring_files_are_not(engine: Path) -> None:
    assert is_vllm_file(str(engine / "model.py")) and is_vllm_file(
        str(engine / "models" / "llama.py")
    )
    assert not is_vllm_file(str(engine.parent / "vllm_other" / "model.py")) and not is_vllm_file(
        str(engine.parent / "torch" / "nn.py")
    )


def test_without_the_engine_no_file_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    assert not is_vllm_file("/x/site-packages/vllm/model.py")
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))  # a package without a file
    assert not is_vllm_file("/x/site-packages/vllm/model.py")


def test_the_users_line_below_an_engines_is_the_place(tmp_path: Path) -> None:
    place = asked_from(tmp_path / "serve.py")(find_user_caller)
    assert place is not None and (Path(place.file).name, place.line) == ("serve.py", 2)


def test_an_installed_file_is_never_the_place(engine: Path) -> None:
    place = asked_from(engine / "runner.py")(find_user_caller)
    assert place is None or Path(place.file).name != "runner.py"
