"""Runs real programs on the GPU with the agent recording to a file, and reads the recording."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "agents" / "examples"


class Recording:
    """The reports of one process."""

    def __init__(self, path: Path) -> None:
        requests = [json.loads(line) for line in path.read_text().splitlines()]
        self.instance: dict[str, Any] = requests[-1]["instance"]
        self.reports: list[dict[str, Any]] = [
            report for request in requests for report in request["reports"]
        ]

    def all(self, name: str) -> list[dict[str, Any]]:
        """The compiles, findings, facts or regions of all windows."""
        return [entry for report in self.reports for entry in report.get(name, [])]

    def capability(self, name: str) -> tuple[str, str]:
        answer, why = self.instance["capabilities"][name]
        return answer, why


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Recording]:
    """Runs `python ARGUMENTS` with the agent enabled; a failing program fails the test with its
    output."""

    def run(*arguments: str, fresh_cache: bool = False) -> Recording:
        path = tmp_path / "reports.jsonl"
        path.unlink(missing_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "agents"),
            "COMPILEWATCH_ENDPOINT": f"file:{path}",
            "COMPILEWATCH_MODEL": "ranker",
            "COMPILEWATCH_INTERVAL": "2",
        }
        if fresh_cache:
            environment["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path / "cache")
        done = subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return Recording(path)

    return run
