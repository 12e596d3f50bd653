"""Real processes that run a small program with the agent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LIMIT = 120.0


def run(
    program: str | Path, *arguments: str, limit: float = LIMIT, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program, given as text or as a file, to its end, with these COMPILEWATCH_* settings
    and no others."""
    how = [str(program)] if isinstance(program, Path) else ["-c", program]
    return _python(*how, *arguments, settings=settings, limit=limit)


def command(
    *words: str, folder: Path | None = None, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Runs `compilewatch` with these arguments."""
    return _python("-m", "compilewatch", *words, settings=settings, folder=folder)


def environment(**settings: str) -> dict[str, str]:
    """The environment of a process with these COMPILEWATCH_* settings and no others, and without
    the dashboard's Django settings.

    The tests of the dashboard set DJANGO_SETTINGS_MODULE in their process; Celery loads those
    settings where it finds the variable.
    """
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COMPILEWATCH_", "DJANGO_"))
    }
    return {**clean, **{f"COMPILEWATCH_{name}": value for name, value in settings.items()}}


def _python(
    *words: str, settings: dict[str, str], folder: Path | None = None, limit: float = LIMIT
) -> subprocess.CompletedProcess[str]:
    full = [sys.executable, *words]
    return subprocess.run(
        full,
        env=environment(**settings),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
