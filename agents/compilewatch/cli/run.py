"""Launcher: `compilewatch run` sets the environment and replaces itself with the command.

Each Python process below the command starts the agent."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from compilewatch.config import load
from compilewatch.errors import AgentError, ConfigError, warn_user

USAGE = (
    "run takes a command: compilewatch run -- python serve.py, "
    "compilewatch run -- torchrun --nproc-per-node 8 train.py, or any other command that starts "
    "Python, such as compilewatch run -- uvicorn serve:app --workers 2"
)
AUTOSTART = Path(__file__).resolve().parents[1] / "autostart"
"""The folder whose `sitecustomize` each Python process below the command runs at its start."""
STARTED_FOR = "COMPILEWATCH_AUTOSTART"
_PYTHON_FILES = (".py", ".pyc", ".pyw", ".pyz", ".zip")
_IGNORED_BY_PYTHON = ("SIGPIPE", "SIGXFSZ", "SIGXFZ")


def run(words: list[str], *, model: str | None = None, version: str | None = None) -> int:
    """Replaces this process with the command; raises an AgentError without such a command."""
    command = command_of(words)
    environment = environment_with_agent(os.environ, model, version)
    try:
        load({}, environment)
    except ConfigError as error:
        warn_user(str(error))
    _replace_process(command, environment)
    return 0


def command_of(words: list[str]) -> list[str]:
    """The command with the path of its program.

    A Python file, or options of Python such as `-m`, run in this interpreter."""
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        raise AgentError(USAGE)
    path = None if words[0].startswith("-") else _path_of(words[0])
    if words[0].startswith("-") or (path in (None, words[0]) and _is_python_file(words[0])):
        return [sys.executable, *_interpreter_options(), *words]
    if path is None:
        raise AgentError(f"there is no command and no file {words[0]!r:.200}; {USAGE}")
    return [path, *words[1:]]


def environment_with_agent(
    environ: Mapping[str, str], model: str | None, version: str | None
) -> dict[str, str]:
    """The environment in which each Python process starts the agent: the folder is first on
    PYTHONPATH, and the settings are added."""
    path = environ.get("PYTHONPATH", "")
    folder = str(AUTOSTART)
    # An empty entry means the current folder and stays; an empty PYTHONPATH has no entries.
    others = [entry for entry in path.split(os.pathsep) if entry != folder] if path else []
    settings = {"COMPILEWATCH_MODEL": model, "COMPILEWATCH_VERSION": version}
    return {
        **environ,
        "PYTHONPATH": os.pathsep.join([folder, *others]),
        STARTED_FOR: sys.prefix,
        **{name: value for name, value in settings.items() if value},
    }


def _is_python_file(word: str) -> bool:
    """Whether the word is a program for Python and none that the system can start."""
    path = Path(word)
    if os.path.isdir(word):  # noqa: PTH112 - Path raises for an unreadable folder
        return os.path.exists(os.path.join(word, "__main__.py"))  # noqa: PTH110, PTH118
    if not os.path.isfile(word):  # noqa: PTH113
        return False
    return path.suffix in _PYTHON_FILES or not (path.suffix or os.access(path, os.X_OK))


def _path_of(word: str) -> str | None:
    """The path of the named program.

    `python` is this interpreter. The commands of its virtual environment precede those on PATH."""
    if word in ("python", "python3", f"python3.{sys.version_info.minor}"):
        return sys.executable
    own = str(Path(sys.executable).parent)
    places = [None, own] if sys.prefix == sys.base_prefix else [own, None]
    found = (shutil.which(word, path=place) for place in places)
    is_file = os.path.isfile(word)  # noqa: PTH113
    return next(filter(None, found), word if is_file else None)


def _interpreter_options() -> list[str]:
    """The options of this interpreter, such as -u or -X dev: another launcher may have set them for
    the program."""
    before = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    if len(before) > 1 and before[-2].startswith("-") and before[-2].endswith("m"):
        flags = before[-2][:-1]
        return [*before[:-2], *([flags] if flags != "-" else [])]
    return before[:-1]


def _replace_process(command: list[str], environment: Mapping[str, str]) -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by the caller
            stream.flush()
    for name in _IGNORED_BY_PYTHON:
        if hasattr(signal, name):  # the command finds them as a shell leaves them
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execve(command[0], command, environment)
    except OSError as error:
        raise AgentError(
            f"{command[0]} cannot be started: {error.strerror or error}; {USAGE}"
        ) from None
