"""`compilewatch cache save` and `cache load`: what one process compiled, carried in a file to machines that shall start warm."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilewatch.agent import init
from compilewatch.cache_cli.archive import Made, file_read, file_write
from compilewatch.cache_cli.local_environment import folder_here, made_with, torch_imported
from compilewatch.cli.python_program import Program, program_of
from compilewatch.cli.torchrun import is_torchrun
from compilewatch.config import endpoint_is_set
from compilewatch.errors import AgentError
from compilewatch.sources.inductor.loaded_keys import keys_write
from compilewatch.version import __version__

NOT_SAVED = NOT_LOADED = 1


def save(path: str, words: list[str], model: str = "") -> int:
    """Runs the program, then saves what torch compiled for it or found in its caches; the program's own exit is the command's where the
    program fails. Raises an AgentError where nothing can be run or written."""
    program = program_of(words[1:] if words[:1] == ["--"] else words)
    if is_torchrun(program):
        raise AgentError(
            "cache save takes one process: run the program of one rank, without torchrun"
        )
    if program.interpreter_options:
        again = [
            "-m",
            "compilewatch",
            "cache",
            "save",
            *(["--model", model] if model else []),
            path,
            "--",
        ]
        os.execv(
            sys.executable, [sys.executable, *program.interpreter_options, *again, *program.words]
        )
    if not Path(path).absolute().parent.is_dir():
        raise AgentError(
            f"{path} cannot be written: there is no folder {Path(path).absolute().parent}"
        )
    if endpoint_is_set():
        init(model=model or None)
    _run(program)
    return _saved(Path(path).absolute(), model or os.environ.get("COMPILEWATCH_MODEL", ""))


def _run(program: Program) -> None:
    try:
        program.run()
    except SystemExit as end:
        if end.code not in (None, 0):
            raise  # a program that failed is no warm-up


def _saved(path: Path, model: str) -> int:
    torch = sys.modules.get("torch")
    saved = None if torch is None else _compiler(torch, "save_cache_artifacts")()
    if saved is None:
        print(
            "nothing was compiled and no cache was asked, so there is nothing to save: does the program call what it compiles?"
        )
        return NOT_SAVED
    packed, info = saved
    counts = {str(kind): len(keys) for kind, keys in info.artifacts.items()}
    made = Made(
        made_with(),
        counts,
        len(packed),
        hashlib.sha256(packed).hexdigest(),
        time.time_ns() // 1_000_000,
        model,
    )
    file_write(path, made, packed)
    print(f"saved {_counted(counts)}, {len(packed) / 1e6:.1f} MB, in {path}")
    print(f"made with {_made_with(made.made_with)}; it serves machines that have the same")
    return 0


def load(path: str, anyway: bool = False) -> int:
    """Puts what is in the file into the compile caches of this machine, for processes that start later; answers 1 where nothing in it
    would be found here. Raises an AgentError where the file or torch cannot be used."""
    made, packed = file_read(Path(path))
    torch = torch_imported()
    differing = list(made.differences(made_with()))
    if differing:
        print(
            f"{path} was made elsewhere: {'; '.join(differing)}. Its entries have keys that nobody asks for here."
        )
        if not anyway:
            print(
                "Nothing was loaded. Make the file with what runs here (compilewatch cache save), or add --anyway."
            )
            return NOT_LOADED
    began = time.perf_counter()
    try:
        info = _compiler(torch, "load_cache_artifacts")(packed)
    except Exception as error:  # noqa: BLE001 - torch writes files and unpickles, and may fail in any way
        raise AgentError(f"torch could not load {path}: {error!r:.200}") from None
    if info is None:
        print(f"torch {torch.__version__} could not read what is in {path}; nothing was loaded")
        return NOT_LOADED
    folder = folder_here()
    told = "hits on them are told as hits of the mega-cache"
    try:
        keys_write(folder, (str(key) for keys in info.artifacts.values() for key in keys))
    except OSError as error:
        told = f"hits on them are not told apart, as that cannot be noted there: {error.strerror or error}"
    counts = Counter({str(kind): len(keys) for kind, keys in info.artifacts.items()})
    print(f"loaded {_counted(counts)} in {time.perf_counter() - began:.1f} s into {folder}")
    print(f"processes that use this folder (TORCHINDUCTOR_CACHE_DIR) find them; {told}")
    return 0


def _compiler(torch: Any, name: str) -> Any:
    found = getattr(torch.compiler, name, None)
    if found is None:
        raise AgentError(
            f"torch {torch.__version__} has no torch.compiler.{name}: it came with 2.8 (agent {__version__})"
        )
    return found


def _counted(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"{total} {'entry' if total == 1 else 'entries'} ({kinds})"


def _made_with(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.items() if value)
