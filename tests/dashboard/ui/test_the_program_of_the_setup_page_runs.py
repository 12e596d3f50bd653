"""The example on the Setup page is a complete program: it runs unchanged and sends a report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.ui.pages.setup.snippets import SERVING, TRAINING, TRY


def test_the_example_runs_and_reports_a_compilation(tmp_path: Path) -> None:
    assert "time.time() + 120" in TRY
    (tmp_path / "try_it.py").write_text(TRY.replace("time.time() + 120", "time.time() + 2"))
    reports = tmp_path / "reports.jsonl"
    told = {
        "COMPILEWATCH_ENDPOINT": f"file:{reports}",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "try_it.py"],
        cwd=tmp_path,
        env=os.environ | told,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    text = reports.read_text()
    assert json.loads(text.splitlines()[0])
    assert '"try-it"' in text
    assert "compilations" in text


@pytest.mark.parametrize("snippet", [SERVING, TRAINING, TRY], ids=["serving", "training", "try"])
def test_python_snippets_are_valid_python(snippet: str) -> None:
    compile(snippet, "snippet", "exec")
