"""Phases are exclusive: their sum is at most the total, and the time of an inner timer does not
count for the outer one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from compilewatch.sources.dynamo.compilation_metrics import seconds_of
from compilewatch.sources.dynamo.phase_timer import PhaseClock, phases_of_record

from tests.agent.sources.conftest import Seen


def test_time_counts_for_the_innermost_open_phase() -> None:
    clock = PhaseClock()
    clock.begin("entire_frame_compile", 0.0)
    clock.begin("backend_compile", 1.0)
    clock.begin("a timer without a phase", 1.5)
    clock.begin("inductor_compile", 2.0)
    clock.end("inductor_compile", 5.0)
    clock.end("a timer without a phase", 5.5)
    clock.end("backend_compile", 6.0)
    clock.end("entire_frame_compile", 6.5)
    assert clock.collect() == {"dynamo": 1.5, "aot": 2.0, "inductor": 3.0}
    assert not clock.is_running


def test_a_timer_that_never_ended_does_not_hold_the_outer_one_open() -> None:
    clock = PhaseClock()
    clock.begin("entire_frame_compile", 0.0)
    clock.begin("backend_compile", 1.0)
    clock.end("entire_frame_compile", 3.0)
    assert clock.collect() == {"dynamo": 1.0, "aot": 2.0}
    assert not clock.is_running


def test_work_during_the_build_of_headers_belongs_to_the_headers() -> None:
    clock = PhaseClock()
    clock.begin("entire_frame_compile", 0.0)
    clock.begin("headers", 1.0)
    clock.begin("compile_file", 1.5)
    clock.end("compile_file", 4.0)
    clock.end("headers", 5.0)
    clock.begin("compile_file", 5.0)
    clock.end("compile_file", 6.0)
    clock.end("entire_frame_compile", 6.0)
    assert clock.collect() == {"dynamo": 1.0, "headers": 4.0, "cpp": 1.0}


def test_an_end_without_a_begin_changes_nothing() -> None:
    clock = PhaseClock()
    clock.end("backend_compile", 3.0)
    assert clock.collect() == {}


def test_nested_totals_of_a_record_become_exclusive_where_there_are_no_events() -> None:
    record = SimpleNamespace(
        entire_frame_compile_time_s=10.0,
        backend_compile_time_s=8.0,
        inductor_compile_time_s=5.0,
        code_gen_time_s=1.0,
    )
    assert phases_of_record(record) == {"dynamo": 2.0, "aot": 3.0, "inductor": 4.0, "codegen": 1.0}


def test_work_at_run_time_is_tuning_or_the_capture_of_cuda_graphs() -> None:
    record = SimpleNamespace(
        is_runtime=True,
        duration_us=350_000,
        runtime_triton_autotune_time_us=250_000,
        runtime_cudagraphify_time_us=100_000,
    )
    assert seconds_of(record, {}) == {"total": 0.35, "autotune": 0.25, "cuda_graphs": 0.1}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_the_phases_of_a_real_compilation_sum_to_at_most_its_total(
    seen: Seen, backend: str
) -> None:
    with torch._inductor.config.patch(force_disable_caches=True):
        torch.compile(lambda x: x @ x, backend=backend)(torch.ones(3, 3))
    seconds = seen.compiles()[0].seconds
    total = seconds.pop("total")
    assert {"dynamo", "aot"} <= seconds.keys()
    assert ("inductor" in seconds) == (backend == "inductor")
    assert 0 < sum(seconds.values()) <= total
    assert sum(seconds.values()) > 0.5 * total


@pytest.mark.needs("a C++ compiler")
def test_only_the_first_compilation_of_a_process_waits_for_headers(seen: Seen) -> None:
    torch._inductor.codecache._precompile_header.cache_clear()
    with torch._inductor.config.patch(force_disable_caches=True):
        compiled = torch.compile(lambda x: x.sin() + 1, dynamic=False)
        compiled(torch.ones(3))
        compiled(torch.ones(4))
    first, second = (compile.seconds for compile in seen.compiles())
    assert first["headers"] > 0
    assert sum(first.values()) <= 2 * first["total"] + 1e-6
    assert "headers" not in second
