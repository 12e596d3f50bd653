"""Parallel test processes each clear their own Redis database."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.architecture.tree import REPOSITORY

WRITES = """
import os, pathlib
from tests.flow.stack import REDIS_URL
def test_it() -> None:
    pathlib.Path(__file__).with_name(os.environ["PYTEST_XDIST_WORKER"]).write_text(REDIS_URL)
"""


def test_each_process_has_a_database_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(WRITES)
    words = [
        "-n",
        "3",
        "--dist",
        "each",
        "-c",
        str(REPOSITORY / ".pytest.ini"),
        "--rootdir",
        str(REPOSITORY),
        "-p",
        "no:cacheprovider",
    ]
    command = [sys.executable, "-m", "pytest", *words, str(tmp_path / "test_one.py")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert len({(tmp_path / f"gw{number}").read_text() for number in range(3)}) == 3
