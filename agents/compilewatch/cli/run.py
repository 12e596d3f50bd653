"""`compilewatch run`: starts a program as Python would, with the agent on and every `torch.compile` watched; its code stays as it is."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

from compilewatch.agent import CLIENT, init
from compilewatch.cli.python_program import Program, program_of
from compilewatch.cli.torchrun import is_torchrun, torchrun_main
from compilewatch.instrument.api import is_watched, watch_compiled
from compilewatch.recording.recorder import RECORDER
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.import_hook import ImportHook
from compilewatch.runtime.process_exit import exit_code


def run(words: list[str], *, model: str | None = None, version: str | None = None) -> int:
    """Starts the agent, then the program; the program's own exit is the exit of the command. Raises an AgentError for what is no
    Python program."""
    program = program_of(words[1:] if words[:1] == ["--"] else words)
    named = [
        word
        for flag, value in (("--model", model), ("--model-version", version))
        if value
        for word in (flag, value)
    ]
    again = ["-m", "compilewatch", "run", *named, "--"]
    if program.interpreter_options:
        # They cannot be had in an interpreter that already runs.
        os.execv(
            sys.executable, [sys.executable, *program.interpreter_options, *again, *program.words]
        )
    if is_torchrun(program):
        return torchrun_main(program.arguments, again)
    return _run_here(program, model, version)


def _run_here(program: Program, model: str | None, version: str | None) -> int:
    if init(model=model, version=version):
        ImportHook().when_imported("torch", _compile_watched)
    try:
        program.run()
    except KeyboardInterrupt:
        # Python forgets that it was interrupted, and exits with 1, if another thread ends an import before it looks.
        if CLIENT.worker is not None:
            CLIENT.worker.settle()
        raise
    except SystemExit as error:
        CLIENT.ending = {"code": exit_code(error)}
        raise
    CLIENT.ending = {"code": 0}
    return 0


def _compile_watched() -> None:
    """Has `torch.compile` answer with a watched callable, named after what it was handed; `Module.compile` goes through it too."""
    with FaultBarrier(RECORDER.internal_error):
        torch = sys.modules["torch"]
        torch.compile = _watching(torch.compile)  # type: ignore[attr-defined]


def _watching(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(model: Any = None, **options: Any) -> Any:
        compiled = original(model, **options)
        if model is not None:
            return _once(compiled, model, options)
        # torch's own decorator comes back here with the function; older ones do not.
        return lambda handed: _once(compiled(handed), handed, options)

    return compile


def _once(compiled: Any, handed: Any, options: dict[str, Any]) -> Any:
    with FaultBarrier(RECORDER.internal_error):
        return compiled if is_watched(compiled) else watch_compiled(compiled, handed, options)
    return compiled
