"""The agent as a wheel: it installs into an empty environment, without an index, and runs there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import compilewatch
import pytest

from tests.agent.pythons import AGENT

JOB = """
import sys, compilewatch
compilewatch.init(model="ranker", version="1", endpoint="file:reports")
call = compilewatch.watch(lambda: None, name="forward")
for _ in range(3):
    call()
compilewatch.shutdown()
print(compilewatch.__file__, compilewatch.__version__)
"""


def pip(*words: str) -> str:
    """The environment without the paths that this run has added."""
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-m", "pip", *words],
        env=alone,
        capture_output=True,
        text=True,
        check=True,
        timeout=170,
    ).stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from the repository."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(
        AGENT,
        folder / "agents",
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"),
    )
    pip(
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        str(folder),
        str(folder / "agents"),
    )
    [made] = folder.glob("*.whl")
    return made


def test_the_wheel_installs_and_reports_without_other_packages(wheel: Path, tmp_path: Path) -> None:
    assert wheel.name == f"compilewatch-{compilewatch.__version__}-py3-none-any.whl"
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare/bin/python"
    pip("--python", str(python), "install", "-q", "--no-index", str(wheel))
    assert pip("--python", str(python), "list", "--format=freeze").split() == [
        f"compilewatch=={compilewatch.__version__}"
    ]

    done = subprocess.run(
        [python, "-I", "-c", JOB],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    where, version = done.stdout.split()
    assert (Path(where).is_relative_to(tmp_path / "bare"), version) == (
        True,
        compilewatch.__version__,
    )
    assert '"forward"' in (tmp_path / "reports").read_text()
    said = subprocess.run(
        [tmp_path / "bare/bin/compilewatch", "version"], capture_output=True, text=True, check=True
    ).stdout
    assert compilewatch.__version__ in said


def test_the_wheel_holds_the_code_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    ours = {
        str(file.relative_to(AGENT))
        for file in (AGENT / "compilewatch").rglob("*")
        if file.suffix == ".py" or file.name == "py.typed"
    }
    assert names == ours


def test_each_changelog_begins_with_the_version_of_its_package() -> None:
    for package, file in (
        (AGENT / "compilewatch", "version.py"),
        (AGENT.parent / "dashboard", "__init__.py"),
    ):
        [version] = re.findall(
            r'^__version__ = "(.+)"$', (package / file).read_text(), re.MULTILINE
        )
        log = next(
            folder / "CHANGELOG.md"
            for folder in (package, package.parent)
            if (folder / "CHANGELOG.md").exists()
        )
        assert re.findall(r"^## (.+)$", log.read_text(), re.MULTILINE)[0] == version
        elsewhere = [
            other
            for other in package.rglob("*.py")
            if f'"{version}"' in other.read_text() and other != package / file
        ]
        assert elsewhere == []
