"""Reads the repository's own source for the architecture tests."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def python_files(folder: Path) -> Iterator[Path]:
    """Every Python file below the folder, without migrations."""
    for file in sorted(folder.rglob("*.py")):
        if not {"migrations", "__pycache__", ".venv"} & set(file.parts):
            yield file


def modules(file: Path) -> Iterator[str]:
    """Names of the modules that a file imports anywhere."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def tracked() -> list[str]:
    """Paths that git tracks, or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for path in listed.stdout.splitlines() if (REPOSITORY / path).exists()]
