"""If a requirement of the tests is missing, dependent tests are skipped with a message, or fail if
CI=true."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import REPOSITORY


def bare(folder: Path, *words: str, ci: str = "") -> subprocess.CompletedProcess[str]:
    """Output of a Python module whose PATH contains no program."""
    environment = {
        **os.environ,
        "PATH": str(folder),
        "CXX": "",
        "PLAYWRIGHT_BROWSERS_PATH": str(folder),
        "CI": ci,
    }
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(("ci", "becomes"), [("", "are skipped"), ("true", "fail, for CI=true")])
def test_the_run_lists_missing_parts_and_their_install_command(
    tmp_path: Path, ci: str, becomes: str
) -> None:
    said = bare(tmp_path, "tests.machine", "--after", ci=ci).stdout
    assert said.startswith(
        "compilewatch: every test that this machine can run passed\ncompilewatch: missing here: "
    )
    assert f"; the tests that need it {becomes}: apt-get install " in said
    assert {"redis-server", "chromium", "caddy", "g++", "strace"} <= set(
        said.rpartition("apt-get install ")[2].split()
    )


@pytest.mark.parametrize(("ci", "status", "word"), [("", 0, "1 skipped"), ("true", 1, "1 error")])
def test_a_test_that_needs_it_is_skipped_or_fails(
    tmp_path: Path, ci: str, status: int, word: str
) -> None:
    (tmp_path / "test_one.py").write_text(
        "import pytest\n@pytest.mark.needs('Caddy')\ndef test_it() -> None: pass\n"
    )
    words = (
        "pytest",
        "-rs",
        "-c",
        str(REPOSITORY / ".pytest.ini"),
        "--rootdir",
        str(REPOSITORY),
        "-p",
        "no:cacheprovider",
    )
    done = bare(tmp_path, *words, str(tmp_path / "test_one.py"), ci=ci)
    assert (
        done.returncode,
        word in done.stdout,
        "missing here: Caddy: apt-get install caddy" in done.stdout,
    ) == (status, True, True), done
