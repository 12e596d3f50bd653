"""Processes of a benchmark: fresh ones with all bytecode already written, as in an installed
package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
_BYTECODE = Path(tempfile.gettempdir()) / f"compilewatch-bench-bytecode-{os.getuid()}"


def environment(**settings: str) -> dict[str, str]:
    """The environment of a process with exactly these COMPILEWATCH_* settings."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    kept |= {
        "PYTHONPYCACHEPREFIX": str(_BYTECODE),
        "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{REPOSITORY / 'agents'}",
    }
    return {**kept, **{f"COMPILEWATCH_{name}": value for name, value in settings.items()}}


def start(
    program: str, *words: str, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Starts a process with this program; the program prints one JSON object."""
    command = [sys.executable, "-c", program, *words]
    return subprocess.Popen(
        command,
        env=environ or environment(SPOOL="off"),
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The printed object, after the process has ended."""
    printed, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a benchmark process ended with status {process.returncode}")
    found: dict[str, Any] = json.loads(printed)
    return found


def in_turn(programs: Mapping[str, str], rounds: int) -> dict[str, dict[str, float]]:
    """Medians of the values that each program prints, over several rounds in which all programs run
    one after another. A first round does not count, since it writes bytecode and warms the caches
    of the machine."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        for name, program in programs.items():
            printed = answer(start(program))
            if number:
                found[name].append(printed)
    return {
        name: {key: median(each[key] for each in rounds) for key in rounds[0]}
        for name, rounds in found.items()
    }
