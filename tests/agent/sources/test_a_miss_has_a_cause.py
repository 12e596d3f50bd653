"""For every change between two real processes that share a cache folder, the second process names
the change, and no value leaves it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.environment import QUICK_INDUCTOR

JOB = """
import sys
import compilewatch
assert compilewatch.init(model="ranker", version="1", endpoint="file:" + sys.argv[1], interval=30)
import torch, torch._inductor.config, torch._dynamo.config
{before}
def step(x):
    return {graph}
torch.compile(step, dynamic=False)(torch.ones({size}, {size}))
compilewatch.shutdown()
"""


class Host:
    """A machine on which processes run the job one after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.caches = folder / "caches-kept-here"

    def run(
        self, before: str = "", graph: str = "x @ x", size: int = 4, **environment: str
    ) -> list[dict[str, Any]]:
        """The compilations that the process reported."""
        report = self.folder / "report.jsonl"
        report.unlink(missing_ok=True)
        program = self.folder / "job.py"
        program.write_text(JOB.format(before=before, graph=graph, size=size))
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TORCH", "TRITON", "OMP_", "COMPILEWATCH_"))
        }
        own = {
            **QUICK_INDUCTOR,
            "TORCHINDUCTOR_CACHE_DIR": str(self.caches),
            "COMPILEWATCH_SPOOL": str(self.folder),
            **environment,
        }
        subprocess.run(
            [sys.executable, str(program), str(report)],
            env={**clean, **own},
            check=True,
            timeout=150,
            capture_output=True,
        )
        self.sent = report.read_bytes()
        requests = [json.loads(line) for line in self.sent.splitlines()]
        self.components = requests[-1]["instance"]["components"]
        reports = [one for request in requests for one in request["reports"]]
        self.findings = [
            finding
            for one in reports
            for finding in one.get("findings", [])
            if finding["kind"] == "cache_miss"
        ]
        assert not any(one.get("losses", {}).get("internal_errors") for one in reports)
        return [compile for one in reports for compile in one.get("compiles", [])]

    def names(self, compiled: dict[str, Any], cause: str) -> None:
        """Checks that the compilation missed for this cause, and that a finding names the cause
        with the place and the cost."""
        assert compiled["cache"]["fx"] == "miss"
        assert compiled["miss"] == cause
        (finding,) = self.findings
        assert finding["text"] == cause
        assert finding["where"].startswith("job.py:")
        assert finding["where"].endswith(" in step")
        assert finding["seconds"] == pytest.approx(compiled["seconds"]["total"])


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """A machine whose first process was cold and knew of no earlier run."""
    machine = Host(tmp_path_factory.mktemp("host"))
    (cold,) = machine.run()
    assert cold["cache"] == {"fx": "miss", "aot": "miss"}
    assert cold["miss"] == "no earlier run is known"
    assert [(found["text"], found.get("where", "")) for found in machine.findings] == [
        ("no earlier run is known", "")
    ]
    return machine


def test_a_repeated_run_hits_and_names_no_cause(host: Host) -> None:
    (warm,) = host.run()
    assert warm["cache"] == {"fx": "hit", "aot": "hit"}
    assert warm["saved"] > 0
    assert "miss" not in warm
    assert host.findings == []


def test_another_folder_for_triton_is_no_miss(host: Host, tmp_path: Path) -> None:
    (warm,) = host.run(TRITON_CACHE_DIR=str(tmp_path / "triton"))
    assert warm["cache"] == {"fx": "hit", "aot": "hit"}
    assert host.findings == []
    assert len(host.components["triton cache folder"]) == 8


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (
            {"TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS": "ATEN,CPP,ATEN"},
            "env TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS",
        ),
        pytest.param(
            {"OMP_NUM_THREADS": "1"}, "env OMP_NUM_THREADS", marks=pytest.mark.engines_only
        ),
        (
            {"before": "torch._inductor.config.epilogue_fusion = False"},
            "inductor_config: epilogue_fusion",
        ),
        pytest.param({"graph": "x @ x @ x"}, "graph", marks=pytest.mark.engines_only),
        ({"size": 8}, "inputs of the graph: their number, sizes, types or devices"),
    ],
    ids=["variable", "threads", "option", "graph", "sizes"],
)
def test_the_changed_setting_is_named(host: Host, change: dict[str, Any], cause: str) -> None:
    (compiled,) = host.run(**change)
    host.names(compiled, cause)
    for value in (*change.values(), host.caches):
        assert len(str(value)) < 8 or str(value).encode() not in host.sent


def test_a_folder_that_was_emptied_is_named(host: Host) -> None:
    shutil.rmtree(host.caches)
    (compiled,) = host.run()
    host.names(compiled, "cache folder is new or was emptied")


def test_another_folder_is_named_without_its_path(host: Host, tmp_path: Path) -> None:
    (compiled,) = host.run(TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "folder-that-nobody-may-know"))
    host.names(compiled, "cache folder: another one than before")
    assert b"nobody-may-know" not in host.sent
