"""Two processes share inductor's cache but not Triton's folder: the graph is a hit in both cases,
and the agent reports the state of its kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Recording

Record = Callable[..., Recording]

JOB = """
import compilewatch
compilewatch.init(version="1")
import torch
step = compilewatch.compile(lambda x: torch.softmax(torch.relu(x @ x) + 1, -1).sum(0), name="step")
step(torch.ones(256, 256, device="cuda"))
compilewatch.shutdown()
"""


@pytest.fixture
def start(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[Recording, list[Path]]]:
    """Runs the job with this Triton folder; returns its recording and the kernels in the folder
    afterwards."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("COMPILEWATCH_SPOOL", str(tmp_path / "spool"))

    def run(folder: str) -> tuple[Recording, list[Path]]:
        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / folder))
        recording = record("-c", JOB)
        return recording, sorted((tmp_path / folder).rglob("*.cubin"))

    return run


def answers(recording: Recording) -> list[dict[str, str]]:
    return [compile["cache"] for compile in recording.all("compiles") if compile.get("cache")]


def again(recording: Recording) -> list[str]:
    return [
        one["text"]
        for one in recording.all("findings")
        if one["kind"] == "cache_miss" and "Triton compiled" in one["text"]
    ]


def test_kernels_bundled_with_the_graph_are_written_and_not_compiled(
    start: Callable[[str], tuple[Recording, list[Path]]],
) -> None:
    cold, first = start("one")
    warm, second = start("another")
    assert [one["fx"] for one in answers(cold)] == ["miss"]
    (served,) = answers(warm)
    assert (served["fx"], served["bundle"]) == ("hit", "hit")
    assert [path.name for path in first] == [path.name for path in second] != []
    assert again(warm) == []


def test_without_bundled_kernels_triton_compiles_again_and_the_finding_names_the_folder(
    start: Callable[[str], tuple[Recording, list[Path]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_BUNDLE_TRITON_INTO_FX_GRAPH_CACHE", "0")
    cold, first = start("one")
    kept, _ = start("one")
    moved, second = start("another")
    assert first and second
    assert [one["fx"] for one in answers(kept)] == [one["fx"] for one in answers(moved)] == ["hit"]
    count = len(second)
    kernels = "1 kernel" if count == 1 else f"{count} kernels"
    prefix = f"the graph was there, Triton compiled {kernels} again: triton cache folder"
    assert again(cold) == []
    # Torch 2.11 writes its kernels again even into the old folder.
    assert again(kept) in ([], [f"{prefix} is that of the last run, it was emptied or not used"])
    assert again(moved) == [f"{prefix}: another one than before"]
