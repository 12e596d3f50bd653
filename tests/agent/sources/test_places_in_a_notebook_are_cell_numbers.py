"""Compilations, breaks and guards in a notebook cell have the number of the cell as their place, in
a real kernel."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.agent.conftest import KEY
from tests.agent.server import Dashboard

CELLS = (
    'import compilewatch, torch\ncompilewatch.init(model="m", version="1", interval=200)',
    "def double(x):\n    torch._dynamo.graph_break()\n    return x * 2",
    "compiled = compilewatch.compile(double, "
    'backend="eager")\ncompiled(torch.ones(3))\ncompiled(torch.ones(4))',
    "compilewatch.shutdown()",
)


def test_a_break_and_a_compilation_have_the_cell_number(
    dashboard: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPILEWATCH_ENDPOINT", dashboard.endpoint)
    monkeypatch.setenv("COMPILEWATCH_API_KEY", KEY)
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
    compiles = [one for report in dashboard.reports() for one in report.compiles]
    assert [(one.file, one.line) for one in compiles if one.frame == "double"][:1] == [
        ("In [2]", 1)
    ]
    breaks = [
        one
        for report in dashboard.reports()
        for one in report.findings
        if one.kind == "graph_break"
    ]
    assert breaks and all(one.where.startswith("In [2]:2") for one in breaks)
    assert "ipykernel" not in str(dashboard.requests[-1]["reports"])
