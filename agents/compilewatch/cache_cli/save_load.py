"""`compilewatch cache save` and `cache load`: a file with one process's compile caches gives other
machines a warm start.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compilewatch.autostart import SAVES_CACHES
from compilewatch.cache_cli.archive import BuildInfo, file_read, file_write
from compilewatch.cache_cli.local_environment import build_info, import_torch, local_cache_folder
from compilewatch.cli.run import command_of, environment_with_agent
from compilewatch.errors import AgentError, warn_user
from compilewatch.sources.inductor.loaded_keys import write_keys
from compilewatch.version import __version__

EXIT_NOT_SAVED = EXIT_NOT_LOADED = 1
SIGNALLED = 128
"""Added to the number of the signal that ended the command."""
LAUNCHER = "torch.distributed.run"


def save(path: str, words: list[str], model: str = "") -> int:
    """Runs the command, then keeps the caches that its process saved at its end.

    If the command fails, its exit code is returned and nothing is saved. Raises an AgentError if
    the command cannot run or the file cannot be written.
    """
    command = command_of(words)
    if any(word == LAUNCHER or Path(word).name == "torchrun" for word in command[:3]):
        raise AgentError(
            "cache save accepts one process: run the program of one rank, without torchrun"
        )
    target = Path(path).absolute()
    if not target.parent.is_dir():
        raise AgentError(f"{path} cannot be written: the folder {target.parent} does not exist")
    environment = environment_with_agent(os.environ, model or None, None)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        code = _exit_code(command, {**environment, SAVES_CACHES: folder})
        return code or _keep_saved(list(Path(folder).iterdir()), target)


def _exit_code(command: list[str], environment: dict[str, str]) -> int:
    """Runs the command to its end; a request to end goes on to the command."""
    try:
        process = subprocess.Popen(command, env=environment)
    except OSError as error:
        raise AgentError(f"{command[0]} cannot be started: {error.strerror or error}") from None
    previous = signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    try:
        code = process.wait()
    finally:
        signal.signal(signal.SIGTERM, previous)
    return code if code >= 0 else SIGNALLED - code


def _keep_saved(saved: list[Path], target: Path) -> int:
    if not saved:
        print(
            "nothing to save: the program compiled nothing and looked up no cache. Does it "
            "call its compiled code?"
        )
        return EXIT_NOT_SAVED
    if len(saved) > 1:
        raise AgentError(f"cache save accepts one process, and {len(saved)} processes compiled")
    build, _ = file_read(saved[0])
    try:
        saved[0].replace(target)
    except OSError as error:
        raise AgentError(f"{target} cannot be written: {error.strerror or error}") from None
    print(f"saved {_format_counts(build.artifacts)}, {build.size / 1e6:.1f} MB, in {target}")
    print(
        f"built with {_format_build(build.made_with)}; usable on machines with the same environment"
    )
    return 0


def save_at_exit(folder: str) -> None:
    """Writes the compile caches of this process into the folder when the process ends."""
    atexit.register(_save_own, Path(folder), os.environ.get("COMPILEWATCH_MODEL", ""))


def _save_own(folder: Path, model: str) -> None:
    torch = sys.modules.get("torch")
    try:
        saved = None if torch is None else _compiler(torch, "save_cache_artifacts")()
        if saved is not None:
            packed, info = saved
            counts = {str(kind): len(keys) for kind, keys in info.artifacts.items()}
            digest = hashlib.sha256(packed).hexdigest()
            now_ms = time.time_ns() // 1_000_000
            build = BuildInfo(build_info(), counts, len(packed), digest, now_ms, model)
            file_write(folder / str(os.getpid()), build, packed)
    except Exception as error:  # noqa: BLE001 - torch can fail in any way while it pickles
        warn_user(f"the caches were not saved: {error!r:.200}")


def load(path: str, anyway: bool = False) -> int:
    """Loads the file into the compile caches of this machine, for processes that start later.

    Returns 1 if no process here could use an entry. Raises an AgentError if the file or torch
    cannot be used.
    """
    build, packed = file_read(Path(path))
    torch = import_torch()
    differing = list(build.differences(build_info()))
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
            return EXIT_NOT_LOADED
    started_at = time.perf_counter()
    try:
        info = _compiler(torch, "load_cache_artifacts")(packed)
    except Exception as error:  # noqa: BLE001 - torch unpickles and writes files
        raise AgentError(f"torch could not load {path}: {error!r:.200}") from None
    if info is None:
        print(f"torch {torch.__version__} could not read the content of {path}; nothing was loaded")
        return EXIT_NOT_LOADED
    folder = local_cache_folder()
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
        write_keys(folder, (str(key) for keys in info.artifacts.values() for key in keys))
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
