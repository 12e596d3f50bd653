"""If inductor's cache has the graph and Triton's folder no longer has the kernels, that is no miss,
but costs compile time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from compilewatch.sources.inductor.triton_recompiles import (
    count_recompiled_kernels,
    describe_recompile,
)
from compilewatch.wire.messages import Compile

HIT = {"fx": "hit"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Triton's folder, with one kernel of an hour ago and two that were written just now, one of
    them for another GPU."""
    for name, file, age in (
        ("OLD", "k.cubin", 3600.0),
        ("NEW", "k.cubin", 0.0),
        ("1/OTHER", "k.hsaco", 0.0),
        ("STUB", "launcher.so", 0.0),
    ):
        kernel = tmp_path / name
        kernel.mkdir(parents=True)
        (kernel / file).write_bytes(b"")
        written = time.time() - age
        os.utime(
            kernel / file, (written, written)
        )  # keep the folder's own time at now: loading a kernel changes it too
    return tmp_path


def compile_of(cache: dict[str, str], triton: float = 2.0) -> Compile:
    return Compile(
        time.time(),
        "0/0",
        "first",
        "ok",
        frame="step",
        seconds={"total": 3.0, "triton": triton},
        cache=cache,
    )


def test_kernels_written_during_a_hit_are_counted(folder: Path) -> None:
    environ = {"TRITON_CACHE_DIR": str(folder)}
    assert count_recompiled_kernels(compile_of(HIT), environ) == 2
    assert count_recompiled_kernels(compile_of({"fx": "hit", "aot": "hit"}), environ) == 2


OTHERS = {
    "a miss": compile_of({"fx": "miss"}),
    "half a miss": compile_of({"fx": "hit", "aot": "miss"}),
    "kernels that came with the graph": compile_of({"fx": "hit", "bundle": "hit"}),
    "no time spent on it": compile_of(HIT, 0.01),
}


@pytest.mark.parametrize("one", OTHERS.values(), ids=OTHERS)
def test_other_compilations_count_no_kernels(folder: Path, one: Compile) -> None:
    assert count_recompiled_kernels(one, {"TRITON_CACHE_DIR": str(folder)}) == 0


def test_a_missing_folder_is_no_fault(tmp_path: Path) -> None:
    assert (
        count_recompiled_kernels(compile_of(HIT), {"TRITON_CACHE_DIR": str(tmp_path / "none")}) == 0
    )


def test_the_sentence_names_the_known_cause() -> None:
    here, there = {"triton cache folder": "aaaa"}, {"triton cache folder": "bbbb"}
    assert (
        describe_recompile(1, here, there)
        == "the graph was there, Triton compiled 1 kernel again: triton cache folder: another "
        "one than before"
    )
    same = "triton cache folder is that of the last run, it was emptied or not used"
    assert (
        describe_recompile(2, here, here)
        == f"the graph was there, Triton compiled 2 kernels again: {same}"
    )
    assert (
        describe_recompile(2, here, None)
        == "the graph was there, Triton compiled 2 kernels again: no earlier run is known"
    )
