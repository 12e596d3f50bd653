"""API server, engine core, workers and inspection of vLLM differ by their names. These tests do not
run vLLM: a small package takes its place, with the names of processes and modules that vLLM uses.
Untested with vLLM itself, above all the process that inspects a model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from compilewatch.identity.roles import capabilities_of
from compilewatch.wire.messages import HELPS_ALONE

from tests.agent.conftest import KEY
from tests.agent.programs import environment
from tests.agent.server import Dashboard

SERVE = """
import multiprocessing
from compilewatch.integrations.vllm import vllm_plugin

def work(names):
    vllm_plugin()
    if names:
        child = multiprocessing.get_context("spawn").Process(target=work, args=(names[1:],), name=names[0])
        child.start()
        child.join()

if __name__ == "__main__":
    work(["EngineCore_DP0", "VllmWorker-0"])
"""
INSPECT = """
from compilewatch.integrations.vllm import vllm_plugin
if __name__ == "__main__":
    vllm_plugin()
"""


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A folder that holds the package."""
    for package in (
        "vllm",
        "vllm/entrypoints",
        "vllm/entrypoints/openai",
        "vllm/model_executor",
        "vllm/model_executor/models",
    ):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "vllm/entrypoints/openai/api_server.py").write_text(SERVE)
    (tmp_path / "vllm/model_executor/models/registry.py").write_text(INSPECT)
    return tmp_path


def start(engine: Path, module: str, dashboard: Dashboard) -> list[dict[str, object]]:
    settings = {
        **environment(ENDPOINT=dashboard.endpoint, API_KEY=KEY, MODEL="chat"),
        "VLLM_PLUGINS": "compilewatch",
    }
    subprocess.run(
        [sys.executable, "-m", module], cwd=engine, env=settings, check=True, timeout=100
    )
    found = {request["instance"]["pid"]: request["instance"] for request in dashboard.requests}
    return sorted(found.values(), key=lambda one: float(one["started"]))


def test_the_processes_of_a_server_have_their_roles(engine: Path, dashboard: Dashboard) -> None:
    found = start(engine, "vllm.entrypoints.openai.api_server", dashboard)
    assert [one.get("role", "") for one in found] == ["auxiliary", "engine", "worker"]
    assert [one.get("label", "") for one in found] == ["", "EngineCore_DP0", "VllmWorker-0"]
    assert len({one.get("job") for one in found}) == 1 and found[0]["job"]


def test_a_process_that_inspects_a_model_has_its_role(engine: Path, dashboard: Dashboard) -> None:
    [found] = start(engine, "vllm.model_executor.models.registry", dashboard)
    assert found["role"] == "auxiliary"


def test_a_helper_process_reports_nothing_about_compilations(
    engine: Path, dashboard: Dashboard
) -> None:
    capabilities = start(engine, "vllm.model_executor.models.registry", dashboard)[0][
        "capabilities"
    ]
    assert isinstance(capabilities, dict)
    answers = {
        name: answer
        for name, answer in capabilities.items()
        if name not in ("memory", "spool", "switch")
    }
    assert answers and {tuple(answer) for answer in answers.values()} == {("no", HELPS_ALONE)}


@pytest.mark.parametrize(
    ("role", "serves", "answer"),
    [
        ("auxiliary", False, "no"),
        ("auxiliary", True, "yes"),
        ("worker", False, "yes"),
        ("engine", False, "yes"),
        ("parent", False, "yes"),
    ],
)
def test_the_capabilities_of_a_process_follow_its_work(
    role: str, serves: bool, answer: str
) -> None:
    assert capabilities_of(role, serves, {"compilations": ("yes", "")})["compilations"][0] == answer
