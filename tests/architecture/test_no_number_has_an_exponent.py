"""Numbers for people come from `dashboard/vocabulary/numbers.py`: Python's format `g` writes 100 as
1e+02."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import REPOSITORY


def general_formats(path: Path) -> Iterator[str]:
    """Uses of the format `g`, except where the text becomes a number again, which rounds data."""
    tree = ast.parse(path.read_text())
    rounded = {
        id(part)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "float"
        for part in ast.walk(call)
    }
    for node in ast.walk(tree):
        spec = (
            node.format_spec
            if isinstance(node, ast.FormattedValue) and id(node) not in rounded
            else None
        )
        if spec is not None and ast.unparse(spec).rstrip("'\"").endswith("g"):
            yield f"{path.relative_to(REPOSITORY)}:{node.lineno}: {ast.unparse(node)}"


def test_no_text_uses_the_general_format() -> None:
    found = [
        one
        for path in sorted((REPOSITORY / "dashboard").rglob("*.py"))
        for one in general_formats(path)
    ]
    assert [
        one for one in found if "rate.py" not in one
    ] == []  # this command prints its input, in 15 digits
