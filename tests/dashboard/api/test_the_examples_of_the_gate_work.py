"""Examples that users copy: the paths of the AnalysisTemplate match the real answer, and both
scripts run against a live server."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from dashboard.projects.models import Project
from tests.architecture.tree import REPOSITORY
from tests.dashboard.alerts.fleet import Fleet, fleet_make
from tests.dashboard.api.test_the_gate_passes_on_evidence_alone import judged

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLES = REPOSITORY / "docker/gate"
NAMES = {"model": "ranker", "version": "2026.11.3", "environment": "prod"}
STATES = {"healthy": "pass", "roll_back": "fail", "watch": "inconclusive"}


@pytest.fixture
def fleet(project: Project) -> Fleet:
    return fleet_make(project)


def judge_as(fleet: Fleet, kind: str) -> None:
    deployment = fleet.deploy("2026.11.3")
    fleet.say(deployment, kind)
    judged(deployment)


def yaml_of(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / name).read_text())


def filled(text: str, key: str) -> str:
    """The text with the arguments filled in as Argo does."""
    return re.sub(r"\{\{ *args\.(\w+) *\}\}", lambda found: {**NAMES, "key": key}[found[1]], text)


def at_path(answer: Any, path: str) -> Any:
    """The value at a path that consists of names and dots, as Argo reads it."""
    inside = re.fullmatch(r"\{\$((?:\.\w+)+)\}", path)
    assert inside is not None, path
    for name in inside[1].split(".")[1:]:
        answer = answer[name]
    return answer


def holds(condition: str, result: Any) -> bool:
    compared = re.fullmatch(r"result == '(\w+)'", condition)
    assert compared is not None, condition
    return bool(result == compared[1])


@pytest.mark.parametrize(("kind", "state"), STATES.items())
def test_the_analysis_template_reads_the_real_answer(
    client: Client, api_key: str, fleet: Fleet, kind: str, state: str
) -> None:
    judge_as(fleet, kind)
    template = yaml_of("analysis-template.yaml")
    assert (template["apiVersion"], template["kind"]) == (
        "argoproj.io/v1alpha1",
        "AnalysisTemplate",
    )
    assert {arg["name"] for arg in template["spec"]["args"]} == {*NAMES, "key"}
    [metric] = template["spec"]["metrics"]
    web = metric["provider"]["web"]
    headers = {header["key"].lower(): filled(header["value"], api_key) for header in web["headers"]}
    address = filled(web["url"], api_key)
    answer = client.get(address.removeprefix("https://compilewatch.example"), headers=headers)
    assert address.startswith("https://") and answer.status_code == 200
    result = at_path(answer.json(), web["jsonPath"])
    assert result == state
    assert (
        holds(metric["successCondition"], result),
        holds(metric["failureCondition"], result),
    ) == (state == "pass", state == "fail")
    assert metric["inconclusiveLimit"] >= metric["count"] > metric["failureLimit"] == 0


def run(
    command: list[str], server: LiveServer, key: str, folder: Path, **env: str
) -> subprocess.CompletedProcess[str]:
    known = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "COMPILEWATCH_URL": server.url,
        "COMPILEWATCH_API_KEY": key,
    }
    return subprocess.run(command, env=known | env, capture_output=True, text=True, timeout=60)


@pytest.mark.needs("jq and curl")
@pytest.mark.parametrize(("kind", "code"), [("healthy", 0), ("roll_back", 1), ("watch", 2)])
def test_the_step_of_github_actions_runs(
    live_server: LiveServer, api_key: str, fleet: Fleet, kind: str, code: int, tmp_path: Path
) -> None:
    judge_as(fleet, kind)
    [step] = yaml_of("github-actions.yaml")["jobs"]["gate"]["steps"]
    script = tmp_path / "step.sh"
    script.write_text(step["run"])
    asked = {
        "MODEL": "ranker",
        "VERSION": "2026.11.3",
        "ENVIRONMENT": "prod",
        "WAIT_SECONDS": "0",
        "ASK_EVERY": "1",
    }
    assert set(step["env"]) == {"COMPILEWATCH_URL", "COMPILEWATCH_API_KEY", *asked}
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    done = run(bash, live_server, api_key, tmp_path, **asked)
    assert done.returncode == code, done.stdout + done.stderr
    assert (
        f"{STATES[kind]} ({kind}): 2026.11.3 is {kind}." in done.stdout
        and "/compare?b=" in done.stdout
    )
    refused = run(bash, live_server, "nonsense", tmp_path, **asked)
    assert refused.returncode == 2 and "bad_key" in refused.stdout
    assert api_key not in done.stdout + done.stderr


@pytest.mark.needs("jq and curl")
def test_the_curl_script_prints_one_word(
    live_server: LiveServer, api_key: str, fleet: Fleet, tmp_path: Path
) -> None:
    judge_as(fleet, "healthy")
    script = ["sh", str(EXAMPLES / "gate.sh"), "ranker"]
    assert run([*script, "2026.11.3", "prod"], live_server, api_key, tmp_path).stdout == "pass\n"
    assert (
        run([*script, "no such & version", "prod"], live_server, api_key, tmp_path).stdout
        == "inconclusive\n"
    )
    assert run([*script, "2026.11.3"], live_server, "nonsense", tmp_path).returncode != 0
