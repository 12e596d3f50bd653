"""torchrun under `compilewatch run`: the launcher stays as it is, and each worker that it starts runs with the agent on."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from compilewatch.cli.python_program import Program

LAUNCHER = "torch.distributed.run"


def is_torchrun(program: Program) -> bool:
    """Whether the program is torch's launcher, by its command or its module."""
    return (
        program.target == LAUNCHER
        if program.kind == "module"
        else program.kind == "script" and Path(program.target).stem == "torchrun"
    )


def torchrun_main(arguments: list[str], run: list[str]) -> int:
    """torchrun with workers that begin with the words `run` and then their own; the launcher itself runs no model and reports nothing."""
    launcher = importlib.import_module(LAUNCHER)
    launcher.main(with_agent(launcher.get_args_parser().parse_args(arguments), arguments, run))
    return 0


def with_agent(parsed: Any, arguments: list[str], run: list[str]) -> list[str]:
    """The launcher's arguments with `run` before the program that every worker starts."""
    first = len(arguments) - len(parsed.training_script_args) - 1
    options, program = arguments[:first], arguments[first:]
    if options[-1:] == ["--"]:
        options.pop()
    if parsed.no_python:
        return [*options, sys.executable, *run, *program]
    if parsed.module:
        return [*options, *run[1:], "-m", *program]
    return [*options, *run, *program]
