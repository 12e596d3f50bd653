"""A job may use any name for its files: the names of the agent, of commands on PATH and of the job
stay separate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.autostart.jobs import calls_of_processes, folder_with_torch, run_below, variables
from tests.agent.server import Dashboard


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_with_torch(tmp_path)


def test_a_job_named_compilewatch_runs_once_with_the_agent(
    folder: Path, dashboard: Dashboard
) -> None:
    (folder / "jobs").mkdir()
    (folder / "jobs/compilewatch.py").write_text("print(__name__)\nimport work; work.work()")
    done = run_below(folder, dashboard.endpoint, "python", "jobs/compilewatch.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "__main__\n", "")
    assert list(calls_of_processes(dashboard).values()) == [5]


def test_a_package_of_the_job_named_build_is_no_installer(
    folder: Path, dashboard: Dashboard
) -> None:
    (folder / "build").mkdir()
    (folder / "build/__init__.py").write_text("")
    (folder / "build/serve.py").write_text("import work; work.work()")
    done = run_below(folder, dashboard.endpoint, "python", "-m", "build.serve")
    assert (done.returncode, done.stderr, list(calls_of_processes(dashboard).values())) == (
        0,
        "",
        [5],
    )


def test_a_command_on_path_comes_before_a_file_of_the_same_name(
    folder: Path, dashboard: Dashboard
) -> None:
    (folder / "cat").write_text("this is no program")
    done = run_below(folder, dashboard.endpoint, "cat", given="as given")
    assert (done.returncode, done.stdout, done.stderr) == (0, "as given", "")


def test_torch_that_a_pth_file_imported_is_watched(folder: Path, dashboard: Dashboard) -> None:
    program = (
        "import sys, runpy; import torch; runpy.run_path(sys.argv[1]); import work; work.work()"
    )
    file = Path(__file__).resolve().parents[3] / "agents/compilewatch/autostart/sitecustomize.py"
    env = {**variables(folder, dashboard.endpoint), "COMPILEWATCH_AUTOSTART": sys.prefix}
    subprocess.run(
        [sys.executable, "-c", program, str(file)], cwd=folder, env=env, check=True, timeout=60
    )
    assert list(calls_of_processes(dashboard).values()) == [5]


def test_a_command_with_closed_output_runs(folder: Path, dashboard: Dashboard) -> None:
    command = f"{sys.executable} -m compilewatch run -- touch ran >&- 2>&-"
    subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=variables(folder, dashboard.endpoint),
        check=True,
        timeout=60,
    )
    assert (folder / "ran").exists()


SLOTS = """
import importlib.machinery, importlib.util, sys

class Loader:
    __slots__ = ("own",)
    def __init__(self, own): self.own = own
    def create_module(self, spec): return None
    def exec_module(self, module): self.own.exec_module(module)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            return importlib.util.spec_from_loader(name, Loader(spec.loader))

sys.meta_path.insert(1, Finder())
import work; work.work()
"""
RELOAD = (
    "import importlib, sitecustomize; importlib.reload(sitecustomize); import work; work.work()"
)


@pytest.mark.parametrize(
    "program", [SLOTS, RELOAD], ids=["a loader with slots", "a second sitecustomize"]
)
def test_import_hooks_of_the_job_do_not_stop_the_agent(
    folder: Path, dashboard: Dashboard, program: str
) -> None:
    done = run_below(folder, dashboard.endpoint, "python", "-c", program)
    assert (done.returncode, done.stderr, list(calls_of_processes(dashboard).values())) == (
        0,
        "",
        [5],
    )


def test_a_word_too_long_for_a_path_is_reported_in_one_sentence(
    folder: Path, dashboard: Dashboard
) -> None:
    done = run_below(folder, dashboard.endpoint, "a" * 5000)
    assert done.returncode == 2 and done.stderr.startswith(
        "compilewatch: there is no command and no file 'aaa"
    )
