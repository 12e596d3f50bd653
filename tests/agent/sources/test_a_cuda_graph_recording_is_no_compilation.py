"""Torch's own timers report the work of compiled code at run time: benchmarked kernels as
`autotune`, recorded CUDA graphs as `cuda_graph`; neither looked anything up in a cache."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch
import torch._dynamo.utils as utils
from compilewatch.recording.cold_start import AUTOTUNE, COMPILE, GRAPHS, _list_compilations
from compilewatch.wire.messages import Compile
from torch._guards import CompileId

from tests.agent.sources.conftest import Seen

RECORDS, TUNES = "runtime_cudagraphify_time_us", "runtime_triton_autotune_time_us"


@pytest.fixture
def code() -> Iterator[CompileId]:
    """The compile id of a function that ran compiled once."""
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
    yield CompileId(frame_id=0, frame_compile_id=0)


def spend(
    code: CompileId, column: str, seconds: float = 0.0, *, inside: str = "", backward: bool = False
) -> None:
    """Work of compiled code at run time, timed by torch's own timer, with another timer inside."""
    with utils.dynamo_timed(
        f"by {column}", compile_id=code, is_backward=backward, dynamo_compile_column_us=column
    ):
        time.sleep(seconds)
        if inside:
            with utils.dynamo_timed(
                f"by {inside}", compile_id=code, dynamo_compile_column_us=inside
            ):
                time.sleep(0.004)
    utils.get_runtime_metrics_context().finish()  # as compiled code does at the end of its call


def at_run_time(seen: Seen) -> list[Compile]:
    return [one for one in seen.compiles() if one.kind not in ("first", "recompile")]


def test_a_recording_has_a_kind_of_its_own(seen: Seen, code: CompileId) -> None:
    spend(code, RECORDS, 0.002)
    (recording,) = at_run_time(seen)
    assert (recording.kind, recording.outcome, recording.id, recording.frame) == (
        "cuda_graph",
        "ok",
        "0/0",
        "<lambda>",
    )
    assert recording.seconds["total"] >= recording.seconds["cuda_graphs"] >= 0.002


def test_a_recording_of_a_backward_or_of_no_measurable_time_is_a_recording_too(
    seen: Seen, code: CompileId
) -> None:
    spend(code, RECORDS, backward=True)
    utils.get_runtime_metrics_context().increment(RECORDS, 0)
    utils.get_runtime_metrics_context().increment(
        "duration_us", 0, {"compile_id": code, "is_runtime": True, "is_forward": True}
    )
    utils.get_runtime_metrics_context().finish()
    assert [one.kind for one in at_run_time(seen)] == ["cuda_graph", "cuda_graph"]


def test_benchmarked_kernels_are_an_autotune(seen: Seen, code: CompileId) -> None:
    spend(code, TUNES, 0.002)
    (tuned,) = at_run_time(seen)
    assert tuned.kind == "autotune"
    assert set(tuned.seconds) == {"total", "autotune"}


def test_of_both_in_one_record_the_longer_one_counts(seen: Seen, code: CompileId) -> None:
    """A first call that benchmarks its kernels while its graph is warmed up."""
    spend(code, TUNES, 0.008, inside=RECORDS)
    spend(code, RECORDS, 0.0, inside=TUNES)
    found = at_run_time(seen)
    assert [one.kind for one in found] == ["autotune", "cuda_graph"]
    assert all(set(one.seconds) == {"total", "autotune", "cuda_graphs"} for one in found)


def test_a_recording_has_no_cache_answer(seen: Seen, code: CompileId) -> None:
    utils.counters["inductor"]["fxgraph_cache_miss"] += 1
    spend(code, RECORDS)
    assert [one.cache for one in at_run_time(seen)] == [{}]


def test_each_kind_is_a_separate_stage_of_a_cold_start(seen: Seen, code: CompileId) -> None:
    spend(code, RECORDS, 0.001)
    spend(code, TUNES, 0.001)
    assert [stretch.name for stretch in _list_compilations(seen.compiles())] == [
        COMPILE,
        GRAPHS,
        AUTOTUNE,
    ]
