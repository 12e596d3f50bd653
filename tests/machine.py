"""Requirements of the tests that `pip` does not install. A test whose requirement is missing is
skipped with the install command, and fails if CI=true. `python -m tests.machine` lists missing
requirements."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

PLAYWRIGHTS = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache/ms-playwright"))
POSTGRESQL = os.environ.get("PGHOST", "127.0.0.1"), int(os.environ.get("PGPORT", "5432"))
REDIS = urlsplit(os.environ.get("COMPILEWATCH_TEST_REDIS") or "redis://127.0.0.1:6379")
"""The server only: each process that runs tests has its own database there."""
CI = os.environ.get("CI") == "true"


class Part(NamedTuple):
    """Debian packages that provide the part, and whether the part is present."""

    packages: str
    here: Callable[[], object]


def postgresql_programs() -> Path | None:
    """The folder of `initdb`: the newest of Debian's versions, else the one on PATH."""
    kept = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parents[1].name)
    )
    found = kept[-1] if kept else shutil.which("initdb")
    return Path(found).parent if found else None


def answers(host: str | None, port: int) -> bool:
    """True if a server listens there."""
    try:
        socket.create_connection((host or "127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


def chromium() -> str | None:
    """The system's Chromium, else the one that playwright installed."""
    return shutil.which("chromium")


def compiles() -> bool:
    """True if Inductor can compile CPU kernels: a C++ compiler and Python's headers are present."""
    compiler = os.environ.get("CXX", "").split()[:1] or ["g++"]
    return (
        bool(shutil.which(*compiler)) and Path(sysconfig.get_path("include"), "Python.h").exists()
    )


PARTS = {
    "PostgreSQL": Part("postgresql", lambda: postgresql_programs() or answers(*POSTGRESQL)),
    "PostgreSQL's programs": Part("postgresql", postgresql_programs),
    "Redis": Part(
        "redis-server",
        lambda: shutil.which("redis-server") or answers(REDIS.hostname, REDIS.port or 6379),
    ),
    "Redis's program": Part("redis-server", lambda: shutil.which("redis-server")),
    "Chromium": Part("chromium", lambda: chromium() or any(PLAYWRIGHTS.glob("chromium*"))),
    "a C++ compiler": Part("g++ python3-dev", compiles),
    "Caddy": Part("caddy", lambda: shutil.which("caddy")),
    "strace": Part("strace", lambda: shutil.which("strace")),
    "promtool": Part("prometheus", lambda: shutil.which("promtool")),
    "jq and curl": Part("jq curl", lambda: shutil.which("jq") and shutil.which("curl")),
    "root, to mount": Part("", lambda: os.geteuid() == 0),
}


def missing() -> list[str]:
    """The names of missing parts."""
    return [name for name, part in PARTS.items() if not part.here()]


def remedy(names: list[str]) -> str:
    """The install command, after a colon; empty if no package helps."""
    packages = dict.fromkeys(" ".join(PARTS[name].packages for name in names).split())
    return f": apt-get install {' '.join(packages)}" if packages else ""


def need(name: str) -> None:
    """Skips or fails the calling test unless the part is present."""
    if PARTS[name].here():
        return
    said = f"missing here: {name}{remedy([name])}"
    if "PYTEST_CURRENT_TEST" not in os.environ:  # for example in a benchmark
        sys.exit(said)
    if CI:
        pytest.fail(said, pytrace=False)
    pytest.skip(said)


def main() -> int:
    """Runs `--before` or `--after` a test run. The output never claims more than the run
    covered."""
    absent = missing()
    if sys.argv[1:] == ["--after"]:
        print(f"compilewatch: every test {'that this machine can run ' * bool(absent)}passed")
    if absent:
        becomes = "fail, for CI=true" if CI else "are skipped"
        print(
            f"compilewatch: missing here: {', '.join(absent)}; the tests that need it "
            f"{becomes}{remedy(absent)}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
