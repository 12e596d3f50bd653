"""Guide runner: runs the commands of the backup page as written."""

from __future__ import annotations

import re
import subprocess

from tests.flow.stack import REPOSITORY


def guide_run(heading: str, environment: dict[str, str]) -> str:
    """The output of the commands under a heading; the first failure ends the run."""
    text = (REPOSITORY / "dashboard/docs/operations/backup.md").read_text()
    [commands] = re.findall(
        rf"^### {re.escape(heading)}\n[^#]*?```sh\n(.*?)```", text, re.MULTILINE | re.DOTALL
    )
    done = subprocess.run(
        ["bash", "-euc", commands],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
