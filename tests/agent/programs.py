"""Real processes that run a small program with the agent in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LIMIT = 120.0


def run(program: str | Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program, its text or its file, to its end, with these COMPILEWATCH_* settings and no others."""
    how = [str(program)] if isinstance(program, Path) else ["-c", program]
    return _python(*how, *arguments, settings=environment)


def command(*words: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `compilewatch` with these words."""
    return _python("-m", "compilewatch", *words, settings=environment, folder=folder)


def _python(*words: str, settings: dict[str, str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")}
    given = {f"COMPILEWATCH_{name}": value for name, value in settings.items()}
    full = [sys.executable, *words]
    return subprocess.run(full, env={**clean, **given}, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False)
