"""The programs of the guides on installing work as written: a report arrives from each process."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from compilewatch.config import Config

from tests.agent.conftest import KEY
from tests.agent.guides import read_section
from tests.agent.programs import environment
from tests.agent.pythons import AGENT
from tests.agent.server import Dashboard

INSTALL = read_section("README.md", "Install")
SERVICE = read_section("docs/guide/services.md", "Single-process service")
FORKING = read_section("docs/guide/services.md", "Forking servers")
CONTAINER = read_section("docs/guide/services.md", "Container image and Kubernetes")
TRAINING = read_section("docs/guide/training.md", "Training job with ranks")
NOTEBOOK = read_section("docs/guide/unchanged-programs.md", "Notebook")
UNCHANGED = read_section("docs/guide/unchanged-programs.md", "Unchanged program")
PATIENT = "import compilewatch.agent\ncompilewatch.client.EXIT_SECONDS = 60.0\n"
"""These tests check what arrives, not the duration of an exit on a busy machine."""
LIMIT = 170


def blocks(section: str, kind: str) -> list[str]:
    """The code blocks of this kind in a section of a guide."""
    return re.findall(rf"```{kind}\n(.*?)```", section, flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder with a reader's files; every Python that starts with this folder on its path waits
    patiently at its end."""
    (tmp_path / "patient").mkdir()
    (tmp_path / "patient" / "sitecustomize.py").write_text(PATIENT)
    return tmp_path


def surroundings(folder: Path, dashboard: Dashboard, **settings: str) -> dict[str, str]:
    """The variables of a reader's process. Compiling takes long, and other tests cover compiling:
    here nothing compiles."""
    known = environment(ENDPOINT=dashboard.endpoint, API_KEY=KEY, **settings)
    path = f"{Path(sys.executable).parent}:{known['PATH']}"
    return {
        **known,
        "PATH": path,
        "PYTHONPATH": f"{folder / 'patient'}:{AGENT}",
        "TORCHDYNAMO_DISABLE": "1",
    }


def run(words: list[str], folder: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "compilewatch:" not in done.stderr, "a wrong setting is reported there"
    return done.stdout


def command_of(program: str) -> list[str]:
    """The command in the first line of a program."""
    found = re.match(r"# \S+, for: (.+)\n", program)
    assert found, program
    return shlex.split(found[1])


def senders(dashboard: Dashboard) -> dict[int, dict[str, Any]]:
    """The processes that sent a report with calls, by process id."""
    regions = [
        (one["instance"], region)
        for one in dashboard.requests
        for report in one["reports"]
        for region in report.get("regions", [])
    ]
    return {instance["pid"]: instance for instance, region in regions if region["calls"]}


def test_a_service_of_one_process_reports(folder: Path, dashboard: Dashboard) -> None:
    [program] = blocks(SERVICE, "python")
    (folder / "serve.py").write_text(program)
    run([sys.executable, "serve.py"], folder, surroundings(folder, dashboard))
    [sender] = senders(dashboard).values()
    assert (sender["model"], sender["version"], dashboard.calls("Linear")) == (
        "ranker",
        "2026.11.3",
        1,
    )


@pytest.mark.parametrize("preload", [True, False], ids=["preload", "no preload"])
def test_each_worker_of_gunicorn_reports(folder: Path, dashboard: Dashboard, preload: bool) -> None:
    program, settings = blocks(FORKING, "python")
    (folder / "serve.py").write_text(program)
    (folder / "gunicorn.conf.py").write_text(settings.replace("True", str(preload)))
    words = [
        *command_of(program),
        "-b",
        "127.0.0.1:0",
        "--access-logfile",
        "served",
        "--access-logformat",
        "%(p)s",
    ]
    variables = surroundings(folder, dashboard)
    with subprocess.Popen(
        words, cwd=folder, env=variables, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        address = next(
            found.group()
            for line in server.stderr
            if (found := re.search(r"http://127\.0\.0\.1:\d+", line))
        )
        answers = {urllib.request.urlopen(address, timeout=60).read() for _ in range(12)}
        server.send_signal(signal.SIGTERM)
        said = server.stderr.read()
        assert server.wait(60) == 0
    assert answers == {b"0.5"} and "compilewatch:" not in said
    assert dashboard.calls("score") == 12
    served = {int(pid) for pid in re.findall(r"\d+", (folder / "served").read_text())}
    assert set(senders(dashboard)) == served and server.pid not in served
    assert {sender["model"] for sender in senders(dashboard).values()} == {"ranker"}


def test_each_rank_of_torchrun_reports(folder: Path, dashboard: Dashboard) -> None:
    [program] = blocks(TRAINING, "python")
    (folder / "train.py").write_text(program)
    torchrun, *rest = command_of(program)
    assert torchrun == "torchrun"
    alone = ["-m", "torch.distributed.run", "--standalone"]  # with a free port
    run([sys.executable, *alone, *rest], folder, surroundings(folder, dashboard))
    found = senders(dashboard).values()
    assert sorted((one.get("rank", 0), one["world_size"], one["kind"]) for one in found) == [
        (0, 2, "training"),
        (1, 2, "training"),
    ]
    assert dashboard.calls("train_step") == 200 and len({one["job"] for one in found}) == 1


def test_the_wheel_is_built_as_in_the_guide_and_installs_without_an_index(folder: Path) -> None:
    """With the installed build tool, and into a folder: a test does not download anything or change
    the environment."""
    build, install = blocks(INSTALL, "sh")[0].splitlines()
    shutil.copytree(
        AGENT,
        folder / "agents",
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"),
    )
    alone = {name: value for name, value in environment().items() if name != "PYTHONPATH"}
    pip = [sys.executable, "-m", "pip"]
    run([*pip, *shlex.split(build)[1:], "-q", "--no-build-isolation", "--no-index"], folder, alone)
    [wheel] = (folder / "dist").iterdir()
    assert wheel.match(shlex.split(install)[-1]), "nothing else is needed"
    copied, placed = re.findall(
        r"^(?:COPY|RUN pip install) (\S+)", blocks(CONTAINER, "dockerfile")[0], flags=re.MULTILINE
    )
    assert wheel.match(copied) and Path(placed).name == "*.whl"
    run(
        [*pip, "install", "-q", "--no-index", "--no-deps", "--target", "installed", str(wheel)],
        folder,
        alone,
    )
    program = (
        "import sys; sys.path.insert(0, 'installed'); import compilewatch; "
        "print(compilewatch.__file__)"
    )
    assert (
        run([sys.executable, "-I", "-c", program], folder, alone)
        .strip()
        .endswith("installed/compilewatch/__init__.py")
    )


def test_the_container_starts_with_the_settings_of_image_and_pod(
    folder: Path, dashboard: Dashboard
) -> None:
    secret, pod = (yaml.safe_load(block) for block in blocks(CONTAINER, "yaml"))
    values = {one["name"]: one.get("value") for one in pod["env"]}
    sources = {one["name"]: one["valueFrom"] for one in pod["env"] if "valueFrom" in one}
    assert sources["COMPILEWATCH_NODE"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    asked = sources["COMPILEWATCH_API_KEY"]["secretKeyRef"]
    assert (asked["name"], set(secret["stringData"])) == (
        secret["metadata"]["name"],
        {asked["key"]},
    )
    assert all(isinstance(value, str) for name, value in values.items() if name not in sources)
    [image] = blocks(CONTAINER, "dockerfile")
    settings = dict(one.split("=", 1) for one in re.findall(r"COMPILEWATCH_\w+=\S+", image))
    told = {
        **settings,
        "COMPILEWATCH_VERSION": values["COMPILEWATCH_VERSION"],
        "COMPILEWATCH_ENDPOINT": dashboard.endpoint,
        "COMPILEWATCH_NODE": "gpu-node-4",
    }
    (folder / "serve.py").write_text(
        "import compilewatch\nwith compilewatch.region('step'):\n    pass\n"
    )
    [words] = [
        shlex.split(found.replace(",", " "))
        for found in re.findall(r"^CMD \[(.+)\]$", image, flags=re.MULTILINE)
    ]
    run([sys.executable, "-m", *words], folder, {**surroundings(folder, dashboard), **told})
    [sender] = senders(dashboard).values()
    assert (sender["model"], sender["version"], sender["node"]) == (
        "ranker",
        "2026.11.3",
        "gpu-node-4",
    )


def test_a_cell_of_a_notebook_reports_with_the_key_of_a_file(
    folder: Path, dashboard: Dashboard
) -> None:
    [cell] = blocks(NOTEBOOK, "python")
    (folder / "compilewatch.key").write_text(f"{KEY}\n")
    told = cell.replace("https://dashboard.example.com", dashboard.endpoint)
    assert told != cell
    variables = surroundings(folder, dashboard)
    bare = {
        name: value for name, value in variables.items() if not name.startswith("COMPILEWATCH_")
    }
    run([sys.executable, "-c", told + told], folder, bare)
    assert (
        dashboard.calls("cell") == 2
        and len({one["instance"]["id"] for one in dashboard.requests}) == 1
    )
    assert {headers["Authorization"] for headers in dashboard.headers} == {f"Bearer {KEY}"}


def test_an_unchanged_program_reports(folder: Path, dashboard: Dashboard) -> None:
    (folder / "serve.py").write_text(
        "import torch\nmodel = torch.compile(torch.nn.Linear(64, 64))\nmodel(torch.randn(8, 64))\n"
    )
    exported, words = blocks(UNCHANGED, "sh")[0].splitlines()
    told = dict(re.findall(r"COMPILEWATCH_(\w+)=(\S+)", exported))
    command, *rest = shlex.split(words)
    run([sys.executable, "-m", command, *rest], folder, surroundings(folder, dashboard, **told))
    [sender] = senders(dashboard).values()
    assert (sender["model"], sender["version"], dashboard.calls("Linear")) == (
        "ranker",
        "2026.11.3",
        1,
    )


def test_every_variable_of_the_sections_is_read_by_the_agent() -> None:
    named = set(
        re.findall(
            r"COMPILEWATCH_[A-Z_]*[A-Z]",
            INSTALL + SERVICE + FORKING + CONTAINER + TRAINING + NOTEBOOK + UNCHANGED,
        )
    )
    assert named >= {
        "COMPILEWATCH_ENDPOINT",
        "COMPILEWATCH_API_KEY",
        "COMPILEWATCH_API_KEY_FILE",
        "COMPILEWATCH_VERSION",
    }
    assert named - {f"COMPILEWATCH_{one.name.upper()}" for one in fields(Config)} == set()
