"""The entry point that vLLM looks for starts the agent once in a process, and does nothing without
an endpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.architecture.tree import REPOSITORY

PROGRAM = """
import json, sys, threading
from importlib.metadata import EntryPoint
register = EntryPoint(sys.argv[1], sys.argv[2], "vllm.general_plugins").load()
register()
from compilewatch.agent import AGENT
first = AGENT.worker
register()
print(json.dumps({"on": first is not None, "same": AGENT.worker is first, "threads": threading.active_count()}))
"""


def start(**settings: str) -> tuple[dict[str, object], str]:
    """A process as vLLM starts it: it loads the entry points of pyproject.toml, and calls each
    twice."""
    named = tomllib.loads((REPOSITORY / "agents/pyproject.toml").read_text())["project"][
        "entry-points"
    ]["vllm.general_plugins"]
    [(name, value)] = named.items()
    assert name == "compilewatch"
    bare = {key: text for key, text in os.environ.items() if not key.startswith("COMPILEWATCH_")}
    environment = {**bare, "PYTHONPATH": str(REPOSITORY / "agents"), **settings}
    command = [sys.executable, "-c", PROGRAM, name, value]
    done = subprocess.run(
        command, env=environment, capture_output=True, check=True, text=True, timeout=120
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found, done.stderr


def test_with_an_endpoint_the_agent_runs_once_and_reports(tmp_path: Path) -> None:
    recording = tmp_path / "reports.jsonl"
    found, said = start(
        COMPILEWATCH_ENDPOINT=f"file:{recording}",
        COMPILEWATCH_MODEL="chat",
        COMPILEWATCH_SPOOL="off",
    )
    assert found["on"] and found["same"] and "Traceback" not in said
    assert recording.exists() and '"chat"' in recording.read_text()


def test_without_an_endpoint_nothing_starts_and_nothing_is_logged() -> None:
    found, said = start()
    assert found == {"on": False, "same": True, "threads": 1} and said == ""


def test_a_wrong_setting_logs_one_line_and_the_engine_continues() -> None:
    found, said = start(COMPILEWATCH_ENDPOINT="nonsense", COMPILEWATCH_MODEL="chat")
    assert not found["on"] and said.count("\n") <= 2 and "Traceback" not in said
