"""`compilewatch run`: a Python program in this process, with the agent on and every `torch.compile` watched; its code stays as it is."""

from __future__ import annotations

import functools
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compilewatch.client import init
from compilewatch.errors import AgentError
from compilewatch.guard import Guard
from compilewatch.hooks import ImportHook
from compilewatch.watching import is_watched, watch_compiled

USAGE = "run takes a Python program: compilewatch run -- python serve.py, or compilewatch run -- python -m package.module"


def run(program: list[str], *, model: str | None = None, version: str | None = None) -> int:
    """Starts the agent, then the program; the program's own exit is the exit of the command."""
    words = [word for i, word in enumerate(program) if not (i == 0 and word == "--")]
    if words and re.fullmatch(r"pythonw?[\d.]*(\.exe)?", Path(words[0]).name):
        words = words[1:]
    if not words or (words[0].startswith("-") and words[0] != "-m") or words == ["-m"]:
        raise AgentError(USAGE)
    if words[0] != "-m" and not Path(words[0]).is_file():
        raise AgentError(f"there is no file {words[0]!r:.200}; {USAGE}")
    if init(model=model, version=version):
        ImportHook().when_imported("torch", _compile_watched)
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(words[0]).resolve().parent))
        runpy.run_path(words[0], run_name="__main__")
    return 0


def _compile_watched() -> None:
    """Has `torch.compile` answer with a watched callable, named after what it was handed."""
    with Guard():
        torch = sys.modules["torch"]
        torch.compile = _watching(torch.compile)  # type: ignore[attr-defined]


def _watching(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(model: Any = None, **options: Any) -> Any:
        compiled = original(model, **options)
        if model is not None:
            return watch_compiled(compiled, model, options)
        # torch's own decorator comes back here with the function; older ones do not.
        return lambda handed: _once(compiled(handed), handed, options)

    return compile


def _once(compiled: Any, handed: Any, options: dict[str, Any]) -> Any:
    return compiled if is_watched(compiled) else watch_compiled(compiled, handed, options)
