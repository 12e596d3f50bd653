"""Installs torch 2.13.0 for the tests: the CPU build where the package index has one, the plain
build elsewhere."""

import subprocess
import sys

VERSION = "2.13.0"


def main() -> int:
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "-q"]
    cpu = subprocess.run([*pip, f"torch=={VERSION}+cpu"], capture_output=True)
    if cpu.returncode == 0:
        return 0
    return subprocess.run([*pip, f"torch=={VERSION}"]).returncode


if __name__ == "__main__":
    sys.exit(main())
