"""The two programs under agents/examples run with the agent, and the agent reports each planted
fault correctly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[3] / "agents" / "examples"


def run(path: Path, program: str, *arguments: str) -> list[dict[str, Any]]:
    """The recorded reports of a short run, with a backend that needs no C++ compiler."""
    environment = {
        **os.environ,
        "COMPILEWATCH_ENDPOINT": f"file:{path}",
        "COMPILEWATCH_INTERVAL": "1",
    }
    command = [
        sys.executable,
        str(EXAMPLES / program),
        "--backend",
        "eager",
        "--width",
        "16",
        "--rate",
        "100",
        *arguments,
    ]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    return [
        report for line in path.read_text().splitlines() for report in json.loads(line)["reports"]
    ]


def every(reports: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [entry for report in reports for entry in report.get(name, [])]


@pytest.mark.engines_only
def test_a_version_that_pads_runs_compiled(tmp_path: Path) -> None:
    reports = run(tmp_path / "reports", "serve.py", "--seconds", "2")
    regions = every(reports, "regions")
    assert {region["name"] for region in regions} == {"Ranker", "request"}
    assert sum(region.get("compiled", 0) for region in regions) > 0
    assert not any(region.get("eager_by") for region in regions)
    assert [fact["kind"] for fact in every(reports, "facts")].count("ready") == 1


def test_a_version_that_forgets_to_pad_runs_partly_eager(tmp_path: Path) -> None:
    reports = run(tmp_path / "reports", "serve.py", "--seconds", "12", "--fault", "shapes")
    regions = [region for region in every(reports, "regions") if region["name"] == "Ranker"]
    (latched,) = [
        fact["data"] for fact in every(reports, "facts") if fact["kind"] == "latched_eager"
    ]
    assert (latched["frame"], latched["limit_name"], latched["limit"]) == (
        "forward",
        "recompile_limit",
        8,
    )
    assert sum(region.get("eager_by", {}).get("limit", 0) for region in regions) > 0
    assert sum(region.get("compiled", 0) for region in regions) > 0
    assert any(compile.get("in_request") for compile in every(reports, "compiles"))


@pytest.mark.engines_only
def test_a_training_version_that_checks_its_activations_breaks_its_graph(tmp_path: Path) -> None:
    reports = run(tmp_path / "reports", "train.py", "--seconds", "4", "--fault", "graph-break")
    breaks = [finding for finding in every(reports, "findings") if finding["kind"] == "graph_break"]
    assert any(
        "Tensor.item()" in finding["text"] and "ranker.py" in finding["where"] for finding in breaks
    )
    assert {"Ranker", "train_step"} <= {region["name"] for region in every(reports, "regions")}


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)


def chosen(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    from options import options_read

    monkeypatch.setattr(sys, "argv", ["serve.py", *arguments])
    return options_read("", model="ranker", rate=1.0)


def test_a_slow_version_has_twice_the_layers(
    examples: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ranker import build

    plain, slow = (
        build(chosen(monkeypatch, "--fault", fault, "--threads", "0")) for fault in ("none", "slow")
    )
    assert len(slow.blocks) == 2 * len(plain.blocks)


def test_a_cold_version_has_an_empty_cache_folder_while_it_runs(
    examples: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from options import surroundings

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "before")
    with surroundings(chosen(monkeypatch, "--fault", "cold-cache")):
        folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        assert list(folder.iterdir()) == []
    assert not folder.exists()
