"""Runs each command in the README and the guides of the agent as written; options, variables and
files exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
from compilewatch.config import Config

from tests.agent.conftest import KEY
from tests.agent.guides import read_guides
from tests.agent.programs import environment
from tests.agent.pythons import AGENT
from tests.agent.server import Dashboard

ROOT = AGENT.parent
GUIDES = read_guides()
TOP = (ROOT / "README.md").read_text()
WORDS = ("compilewatch ", "python ", "pip ", "torchrun ", "uvicorn ", "-m ")
SERVE = """
import compilewatch
import compilewatch.agent
compilewatch.agent.EXIT_SECONDS = 60.0  # this test checks what arrives, not the duration of an exit
call = compilewatch.watch(lambda: None, name="forward")
for _ in range(10):
    call()
"""
CONSOLE = f"#!{sys.executable}\n{SERVE}"
UNDER_RUN = "compilewatch run --model ranker -- "
BENCHES = {"python -m tests.bench peers", "python -m tests.bench start held tail compiled watch"}
pytestmark = pytest.mark.timeout(1800)
GROUND_TRUTH = "python -m tests.agent.ground_truth"
GOLDEN_REAL = "python -m tests.agent.golden_real"


def commands(text: str) -> set[str]:
    """Code spans and indented lines that start like a command."""
    quoted = [
        " ".join(found.split())
        for found in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    ]
    indented = re.findall(
        r"^    (\S.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE
    )
    return {command for command in quoted + indented if command.startswith(WORDS)}


def run(command: str, folder: Path, endpoint: str) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command)
    places = {
        "compilewatch": [sys.executable, "-m", "compilewatch"],
        "python": [sys.executable],
        "pip": [sys.executable, "-m", "pip"],
    }
    settings = {
        **environment(ENDPOINT=endpoint, API_KEY=KEY, SPOOL="off", MODEL="ranker"),
        "PYTHONPATH": f"{AGENT}:{ROOT}",
    }
    settings["PATH"] = f"{folder}:{Path(sys.executable).parent}:{settings['PATH']}"
    full = [*places.get(words[0], words[:1]), *words[1:]]
    return subprocess.run(
        full, cwd=folder, env=settings, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the commands name: programs, a console script, a recording, a trace."""
    for name in ("serve.py", "train.py", "module.py"):
        (tmp_path / name).write_text(SERVE)
    (tmp_path / "uvicorn").write_text(CONSOLE)
    (tmp_path / "uvicorn").chmod(0o700)
    shutil.copytree(
        AGENT,
        tmp_path / "agents",
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"),
    )
    return tmp_path


def calls_arrive(command: str) -> Callable[[Path, Dashboard], None]:
    """The program runs, and its ten calls are on the dashboard."""

    def check(folder: Path, dashboard: Dashboard) -> None:
        done = run(command, folder, dashboard.endpoint)
        assert done.returncode == 0, done.stderr
        dashboard.wait(lambda it: it.calls("forward") == 10)

    return check


def installed(folder: Path, dashboard: Dashboard) -> None:
    """Installs into a folder, with the installed build tool: a test does not change the environment
    or download anything."""
    done = run(
        "pip install --no-deps --no-build-isolation --target installed ./agents",
        folder,
        dashboard.endpoint,
    )
    assert done.returncode == 0, done.stderr
    program = (
        "import sys; sys.path.insert(0, 'installed'); import compilewatch; "
        "print(compilewatch.__file__)"
    )
    found = subprocess.run(
        [sys.executable, "-I", "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found.strip().endswith("installed/compilewatch/__init__.py")


def workers_report(folder: Path, dashboard: Dashboard) -> None:
    """Runs two workers instead of eight; each worker reports."""
    done = run(f"{UNDER_RUN}torchrun --nproc-per-node 2 train.py", folder, dashboard.endpoint)
    assert done.returncode == 0, done.stderr
    dashboard.wait(lambda it: it.calls("forward") == 20)


def replayed(folder: Path, dashboard: Dashboard) -> None:
    assert run(f"{UNDER_RUN}python serve.py", folder, "file:PATH").returncode == 0
    done = run("compilewatch replay PATH --shift-to-now", folder, dashboard.endpoint)
    assert (done.returncode, dashboard.calls("forward")) == (0, 10), done.stderr


def imported(folder: Path, dashboard: Dashboard) -> None:
    """A real trace needs a real job: another test creates a trace and runs this command on it."""
    assert (
        '"import-trace"'
        in (ROOT / "tests/agent/cli/test_a_torch_trace_becomes_reports.py").read_text()
    )


def of_the_caches(test: str) -> Callable[[Path, Dashboard], None]:
    """These commands need a job that compiles: another test creates a job and runs the commands on
    it."""

    def check(folder: Path, dashboard: Dashboard) -> None:
        assert '"cache' in (ROOT / "tests/agent" / test).read_text()

    return check


def doctored(command: str) -> Callable[[Path, Dashboard], None]:
    def check(folder: Path, dashboard: Dashboard) -> None:
        done = run(command, folder, dashboard.endpoint)
        assert done.returncode in (0, 1) and "ranker" in done.stdout, done.stderr

    return check


def listed(command: str) -> Callable[[Path, Dashboard], None]:
    """Benchmarks take minutes and are no tests: only their names are checked."""

    def check(folder: Path, dashboard: Dashboard) -> None:
        done = run(f"{command} --list", folder, dashboard.endpoint)
        assert done.returncode == 0, done.stdout

    return check


def there(command: str) -> Callable[[Path, Dashboard], None]:
    """The command takes minutes, and other tests run its parts: all of it in
    tests/agent/ground_truth, a part of the golden batches."""

    def check(folder: Path, dashboard: Dashboard) -> None:
        done = run(
            f'python -c "import {command.rpartition(" ")[2]}.__main__"', folder, dashboard.endpoint
        )
        assert done.returncode == 0, done.stderr

    return check


RUNS: dict[str, Callable[[Path, Dashboard], None]] = {
    "pip install ./agents": installed,
    f"{UNDER_RUN}python serve.py": calls_arrive(f"{UNDER_RUN}python serve.py"),
    "python -m module": calls_arrive(f"{UNDER_RUN}python -m module"),
    "python -c": calls_arrive(f'{UNDER_RUN}python -c "import module"'),
    "python -O -X dev serve.py": calls_arrive(f"{UNDER_RUN}python -O -X dev serve.py"),
    "uvicorn serve:app": calls_arrive(f"{UNDER_RUN}./uvicorn serve:app"),
    "torchrun --nproc-per-node 8 train.py": workers_report,
    "compilewatch replay PATH --shift-to-now": replayed,
    "compilewatch import-trace DIR --model ranker --model-version 2.4": imported,
    "compilewatch cache-check --model ranker": of_the_caches(
        "cache_cli/test_cache_misses_are_predicted_before_a_start.py"
    ),
    "compilewatch cache save warm.cache -- python warm_up.py": of_the_caches(
        "cache_cli/test_compile_caches_travel_in_a_file.py"
    ),
    "compilewatch cache load warm.cache": of_the_caches(
        "cache_cli/test_compile_caches_travel_in_a_file.py"
    ),
    "compilewatch doctor": doctored("compilewatch doctor"),
    "compilewatch doctor --json": doctored("compilewatch doctor --json"),
    **{command: listed(command) for command in sorted(BENCHES)},
    GROUND_TRUTH: there(GROUND_TRUTH),
    GOLDEN_REAL: there(GOLDEN_REAL),
}


def test_every_command_has_a_run() -> None:
    assert commands(GUIDES) == set(RUNS)


@pytest.mark.parametrize("command", RUNS)
def test_the_command_runs(command: str, folder: Path, dashboard: Dashboard) -> None:
    RUNS[command](folder, dashboard)


def test_the_program_of_the_top_readme_reports(tmp_path: Path, dashboard: Dashboard) -> None:
    [program] = [
        block
        for block in re.findall(r"```python\n(.*?)```", TOP, flags=re.DOTALL)
        if "compilewatch.init" in block
    ]
    job = (
        "import torch\nmodel = torch.nn.Linear(4, 4)\ntorch.compile = lambda fn: "
        f"fn\n{program}\nmodel(torch.ones(2, 4))"
    )
    (tmp_path / "job.py").write_text(job)
    done = run("python job.py", tmp_path, dashboard.endpoint)
    assert done.returncode == 0, done.stderr
    dashboard.wait(lambda it: it.calls("Linear") == 1)


@cache
def named(pattern: str) -> frozenset[str]:
    return frozenset(re.findall(pattern, GUIDES))


def test_every_variable_that_is_named_is_a_setting() -> None:
    known = {f"COMPILEWATCH_{one.name.upper()}" for one in fields(Config)}
    assert named(r"COMPILEWATCH_[A-Z_]*[A-Z]") - known == set()


def test_every_option_that_is_named_exists_for_its_command() -> None:
    asked = {
        word: subprocess.run(_help(word), capture_output=True, text=True, check=True).stdout
        for word in ("replay", "import-trace", "run", "cache-check")
    }
    options = named(r"(--[a-z][a-z-]+)") - {"--nproc-per-node", "--json"}
    own = subprocess.run(
        [sys.executable, *GOLDEN_REAL.split()[1:], "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    known = set(re.findall(r"--[a-z-]+", "".join(asked.values()) + own))
    assert options <= known


def _help(command: str) -> list[str]:
    return [sys.executable, "-m", "compilewatch", command, "--help"]


def test_every_file_and_module_that_is_named_exists() -> None:
    for name in named(r"`((?:tests|agents|dashboard)/[\w/.]+)`"):
        assert (ROOT / name).exists(), name
    for name in named(r"python -m (tests[\w.]*)"):
        assert (ROOT / name.replace(".", "/")).is_dir() or (
            ROOT / f"{name.replace('.', '/')}.py"
        ).exists(), name
