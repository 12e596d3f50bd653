"""`compilewatch cache save` and `cache load`: a file with one process's compile caches gives other
machines a warm start.
"""

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
    """Runs the program, then saves the caches that torch filled or used for it.

    If the program fails, its exit code is the command's. Raises an AgentError if the program cannot
    run or the file cannot be written.
    """
    program = program_of(words[1:] if words[:1] == ["--"] else words)
    if is_torchrun(program):
        raise AgentError(
            "cache save accepts one process: run the program of one rank, without torchrun"
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
            f"{path} cannot be written: the folder {Path(path).absolute().parent} does not exist"
        )
    if endpoint_is_set():
        init(model=model or None)
    _run(program)
    return _save_caches(Path(path).absolute(), model or os.environ.get("COMPILEWATCH_MODEL", ""))


def _run(program: Program) -> None:
    try:
        program.run()
    except SystemExit as end:
        if end.code not in (None, 0):
            raise  # a failed program is no warm-up


def _save_caches(path: Path, model: str) -> int:
    torch = sys.modules.get("torch")
    saved = None if torch is None else _compiler(torch, "save_cache_artifacts")()
    if saved is None:
        print(
            "nothing to save: the program compiled nothing and looked up no cache. Does it "
            "call its compiled code?"
        )
        return NOT_SAVED
    packed, info = saved
    counts = {str(kind): len(keys) for kind, keys in info.artifacts.items()}
    build = Made(
        made_with(),
        counts,
        len(packed),
        hashlib.sha256(packed).hexdigest(),
        time.time_ns() // 1_000_000,
        model,
    )
    file_write(path, build, packed)
    print(f"saved {_format_counts(counts)}, {len(packed) / 1e6:.1f} MB, in {path}")
    print(
        f"built with {_format_build(build.made_with)}; usable on machines with the same environment"
    )
    return 0


def load(path: str, anyway: bool = False) -> int:
    """Loads the file into the compile caches of this machine, for processes that start later.

    Returns 1 if no process here could use an entry. Raises an AgentError if the file or torch
    cannot be used.
    """
    build, packed = file_read(Path(path))
    torch = torch_imported()
    differing = list(build.differences(made_with()))
    if differing:
        print(
            f"{path} was built in another environment: {'; '.join(differing)}. No process "
            "here looks up its entries."
        )
        if not anyway:
            print(
                "Nothing was loaded. Save the file in this environment (compilewatch cache "
                "save), or add --anyway."
            )
            return NOT_LOADED
    started_at = time.perf_counter()
    try:
        info = _compiler(torch, "load_cache_artifacts")(packed)
    except Exception as error:  # noqa: BLE001 - torch unpickles and writes files
        raise AgentError(f"torch could not load {path}: {error!r:.200}") from None
    if info is None:
        print(f"torch {torch.__version__} could not read the content of {path}; nothing was loaded")
        return NOT_LOADED
    folder = folder_here()
    note = _record_keys(folder, info)
    counts = Counter({str(kind): len(keys) for kind, keys in info.artifacts.items()})
    print(
        f"loaded {_format_counts(counts)} in {time.perf_counter() - started_at:.1f} s into {folder}"
    )
    print(f"processes that use this folder (TORCHINDUCTOR_CACHE_DIR) find the entries; {note}")
    return 0


def _record_keys(folder: str, info: Any) -> str:
    """Records the loaded keys in the folder; returns how hits on them are reported."""
    try:
        keys_write(folder, (str(key) for keys in info.artifacts.values() for key in keys))
    except OSError as error:
        reason = error.strerror or error
        return f"hits on them are not reported separately, as the list is not writable: {reason}"
    return "hits on them are reported as hits of the mega-cache"


def _compiler(torch: Any, name: str) -> Any:
    function = getattr(torch.compiler, name, None)
    if function is None:
        raise AgentError(
            f"torch {torch.__version__} has no torch.compiler.{name}; torch 2.8 or newer has "
            f"it (agent {__version__})"
        )
    return function


def _format_counts(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"{total} {'entry' if total == 1 else 'entries'} ({kinds})"


def _format_build(info: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in info.items() if value)
