"""A Python program as its command line names it: a file, a module, a text or a console script, run in this process as `__main__`."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader, SourcelessFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from compilewatch.errors import AgentError

USAGE = (
    "run takes a Python program: compilewatch run -- python serve.py, compilewatch run -- python -m package.module, "
    "compilewatch run -- torchrun --nproc-per-node 8 train.py, or a console script such as compilewatch run -- uvicorn serve:app"
)
_PYTHON = re.compile(r"pythonw?[\d.]*(\.exe)?")
_WITH_VALUE = "WX"
_ENDING = "cm"


@dataclass
class Program:
    """`kind` is script, module or text; `target` its path, name or code."""

    kind: str
    target: str
    arguments: list[str]
    interpreter_options: list[str] = field(default_factory=list)
    """What the command line tells the interpreter, such as -O or -X; they take effect only when it starts."""

    @property
    def words(self) -> list[str]:
        """The program as words behind the interpreter's options."""
        flag = {"script": [], "module": ["-m"], "text": ["-c"]}[self.kind]
        return [*flag, self.target, *self.arguments]

    def run(self) -> None:
        """Runs it as `__main__` to its end; whatever it raises passes."""
        {"script": _run_script, "module": _run_module, "text": _run_text}[self.kind](
            self.target, self.arguments
        )


def program_of(words: list[str]) -> Program:
    """What these words of a command line start; raises an AgentError where that is no Python program."""
    if not words:
        raise AgentError(USAGE)
    if _PYTHON.fullmatch(Path(words[0]).name):
        _check_interpreter(words[0])
        return _behind_python(words[1:])
    if words[0].startswith("-"):
        return _behind_python(words)
    if Path(words[0]).exists():
        return Program("script", words[0], words[1:])
    script = _console_script(words[0])
    if script is None:
        raise AgentError(
            f"there is no file and no Python console script {words[0]!r:.200}; {USAGE}"
        )
    return Program("script", script, words[1:])


def _check_interpreter(word: str) -> None:
    """A bare name means this interpreter; a path must lead to the environment that the agent runs in."""
    here, there = Path(sys.executable).parent, Path(word).parent
    if there != Path() and not (there.exists() and there.samefile(here)):
        raise AgentError(
            f"the agent is installed for {sys.executable}, not for {word}: start it with {word} -m compilewatch run"
        )


def _behind_python(words: list[str]) -> Program:
    options: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word.startswith("--"):
            options.append(word)
            if word == "--check-hash-based-pycs" and rest:
                options.append(rest.pop(0))
            continue
        found = re.match(
            rf"-([^{_WITH_VALUE}{_ENDING}]*)([{_WITH_VALUE}{_ENDING}]?)(.*)", word, re.DOTALL
        )
        assert found is not None
        flags, last, value = found.groups()
        options += [f"-{flags}"] if flags else []
        if not last:
            continue
        if not value and not rest:
            raise AgentError(f"-{last} needs a value; {USAGE}")
        value = value or rest.pop(0)
        if last in _ENDING:
            return Program("module" if last == "m" else "text", value, rest, options)
        options.append(f"-{last}{value}")
    if not rest or rest[0] == "-":
        raise AgentError(USAGE)
    if not Path(rest[0]).exists():
        raise AgentError(f"there is no file {rest[0]!r:.200}; {USAGE}")
    return Program("script", rest[0], rest[1:], options)


def _console_script(name: str) -> str | None:
    """The path of a command that is written in Python, this environment's first."""
    path = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if path is None:
        return None
    with Path(path).open("rb") as file:
        head = file.read(300)
    return path if head.startswith(b"#!") and b"python" in head else None


def _run_script(path: str, arguments: list[str]) -> None:
    sys.argv = [path, *arguments]
    file = path if Path(path).is_absolute() else f"{Path.cwd()}/{path}"
    if Path(path).is_dir() or zipfile.is_zipfile(path):
        _search_first(file)
        _run_spec(PathFinder.find_spec("__main__", [file]), path)
        return
    _search_first(str(Path(path).resolve().parent))
    loader = (SourcelessFileLoader if path.endswith(".pyc") else SourceFileLoader)("__main__", file)
    _execute(
        _code_of(loader, file),
        {"__file__": file, "__cached__": None, "__loader__": loader, "__package__": None},
    )


def _code_of(loader: SourceFileLoader | SourcelessFileLoader, file: str) -> CodeType:
    if isinstance(loader, SourceFileLoader):
        return compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)
    code = loader.get_code("__main__")
    assert code is not None
    return code


def _run_module(name: str, arguments: list[str]) -> None:
    sys.argv = ["-m", *arguments]
    _search_first(str(Path.cwd()))
    spec = _main_spec(name)
    sys.argv[0] = (spec and spec.origin) or name
    _run_spec(spec, name)


def _run_spec(spec: ModuleSpec | None, name: str) -> None:
    """Runs the code of a module that was found; of none there is a sentence."""
    get_code: Callable[[str], CodeType | None] | None = getattr(
        spec and spec.loader, "get_code", None
    )
    code = get_code(spec.name) if spec and get_code else None
    if spec is None or code is None:
        raise AgentError(f"there is no module {name!r:.200} that could be run; {USAGE}")
    about = {
        "__file__": spec.origin,
        "__cached__": spec.cached,
        "__loader__": spec.loader,
        "__package__": spec.parent,
        "__spec__": spec,
    }
    _execute(code, about)


def _main_spec(name: str) -> ModuleSpec | None:
    """The module that `python -m name` runs: of a package its `__main__`; None where there is none."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.__main__".startswith(error.name):
            raise
        return None
    return spec


def _run_text(text: str, arguments: list[str]) -> None:
    sys.argv = ["-c", *arguments]
    _search_first("")
    _execute(compile(text, "<string>", "exec", dont_inherit=True), {})


def _search_first(folder: str) -> None:
    """Puts the program's folder where Python has put that of the agent's own command."""
    if sys.flags.isolated or getattr(sys.flags, "safe_path", False):
        return
    sys.path[0] = folder


def _execute(code: CodeType, about: Mapping[str, Any]) -> None:
    """Runs the code as the main module, which stays: threads and exit handlers of the program outlive the end of its code."""
    main = ModuleType("__main__")
    main.__dict__.update(about)
    sys.modules["__main__"] = main
    exec(code, main.__dict__)
