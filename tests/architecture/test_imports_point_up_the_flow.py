"""Imports point from a later stage to an earlier one; pure code does not import Django; the wire
imports only the standard library."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import REPOSITORY, modules, python_files

FLOW = (
    "vocabulary",
    "common",
    "accounts",
    "projects",
    "ingest",
    "fleet",
    "regressions",
    "alerts",
    "api",
    "ui",
)


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    command = [
        str(Path(sys.executable).with_name("lint-imports")),
        "--config",
        str(root / ".importlinter"),
        "--no-cache",
    ]
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": f"{root}:{root / 'agents'}",
        "HOME": str(root),
    }
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)


def test_every_import_follows_the_contracts() -> None:
    result = lint_imports(REPOSITORY)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("dashboard/fleet/write_facts.py", "from dashboard.alerts import models as alert_models\n"),
        ("dashboard/ingest/models.py", "import dashboard.fleet.models\n"),
        ("dashboard/regressions/judge/evaluate.py", "import django.utils.timezone\n"),
        ("dashboard/api/apps.py", "import compilewatch.recording.recorder\n"),
    ],
)
def test_a_forbidden_import_is_found(tmp_path: Path, file: str, line: str) -> None:
    for part in ("dashboard", "agents/compilewatch"):
        shutil.copytree(
            REPOSITORY / part,
            tmp_path / part,
            ignore=shutil.ignore_patterns("__pycache__", "static", "templates"),
        )
    shutil.copy(REPOSITORY / ".importlinter", tmp_path)
    spoiled = tmp_path / file
    spoiled.write_text(spoiled.read_text() + "\n" + line)
    result = lint_imports(tmp_path)
    assert result.returncode != 0, result.stdout
    assert "BROKEN" in result.stdout


def test_the_wire_imports_only_the_standard_library() -> None:
    foreign = set()
    for file in (REPOSITORY / "agents/compilewatch/wire").glob("*.py"):
        for name in modules(file):
            if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith(
                "compilewatch.wire"
            ):
                foreign.add(f"{file.name}: {name}")
    assert not foreign


def test_no_stage_names_a_later_one_in_a_string() -> None:
    found = []
    for number, app in enumerate(FLOW):
        later = "|".join(FLOW[number + 1 :])
        if not later:
            continue
        pattern = re.compile(rf"^(dashboard\.)?({later})\.[A-Za-z_.]+$")
        for file in python_files(REPOSITORY / "dashboard" / app):
            for node in ast.walk(ast.parse(file.read_text())):
                if (
                    isinstance(node, ast.Constant)
                    and isinstance(node.value, str)
                    and pattern.match(node.value)
                ):
                    # A nudge names the next stage's task: losing it costs seconds, never data.
                    if node.value.endswith(".tasks." + node.value.rsplit(".", 1)[-1]):
                        continue
                    found.append(f"{file.relative_to(REPOSITORY)}:{node.lineno} {node.value}")
    assert not found
