"""The Pythons of this machine that the agent supports: the Python of the tests, those on PATH, and
those of pyenv."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST, NEWEST = 10, 20
AGENT = Path(__file__).resolve().parents[2] / "agents"


def found() -> dict[str, str]:
    """One interpreter per version; the interpreter that runs the tests represents its own
    version."""
    pythons = {".".join(map(str, sys.version_info[:2])): sys.executable}
    roots = [Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"]
    for minor in range(OLDEST, NEWEST):
        version = f"3.{minor}"
        built = [
            str(path) for root in roots for path in sorted(root.glob(f"{version}.*/bin/python"))
        ]
        for path in filter(None, [shutil.which(f"python{version}"), *built]):
            if version not in pythons and _works(path, version):
                pythons[version] = path
    return pythons


def _works(path: str, version: str) -> bool:
    program = "import ssl, zlib, socket, sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run(
        [path, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout.strip() == version


PYTHONS = found()
