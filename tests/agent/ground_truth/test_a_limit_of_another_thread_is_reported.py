"""A compilation reports how many cache entries its function holds and may hold in the compiling
context; a limit that another thread set, and that does not apply in the compiling context, is a
finding."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from compilewatch.recording.recorder import RECORDER
from compilewatch.sources.registry import InstalledSources
from compilewatch.wire.messages import Compile

from tests.agent.sources.conftest import Seen, found, torch_unused

FILE = "tests/agent/ground_truth/test_a_limit_of_another_thread_is_reported.py"
config = torch._dynamo.config


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def call(lengths: range, **options: object) -> None:
    compiled = torch.compile(doubled, backend="eager", dynamic=False, **options)  # type: ignore[call-overload]
    for length in lengths:
        compiled(torch.ones(length))


def aside(job: Callable[[], None]) -> None:
    thread = threading.Thread(target=job)
    thread.start()
    thread.join(60)


def room(compiles: list[Compile]) -> list[tuple[int | None, int | None]]:
    return [(compile.entries, compile.limit) for compile in compiles]


def test_entries_are_counted_per_code_object_across_threads(seen: Seen) -> None:
    call(range(2, 4))
    aside(lambda: call(range(4, 6)))
    assert room(seen.compiles()) == [(1, 8), (2, 8), (3, 8), (4, 8)]
    torch._dynamo.reset()
    call(range(2, 3))
    assert room(seen.compiles()) == [(1, 8)]


def test_a_refused_attempt_leaves_the_entries_at_the_limit(seen: Seen) -> None:
    with config.patch(recompile_limit=2):
        call(range(2, 6))
    assert room(seen.compiles()) == [(1, 2), (2, 2), (2, 2)]


def test_the_limit_of_a_single_torch_compile_call_applies(seen: Seen) -> None:
    call(range(2, 5), recompile_limit=11)
    report = seen.look()
    assert room(report.compiles) == [(1, 11), (2, 11), (3, 11)]
    assert found(report, "limit_not_in_force") == []


def test_the_limit_of_all_objects_together_is_reported_if_it_applies(seen: Seen) -> None:
    with config.patch(recompile_limit=400, accumulated_recompile_limit=3):
        call(range(2, 4))
    assert room(seen.compiles()) == [(1, 3), (2, 3)]


def test_each_object_of_a_class_has_its_own_limit(seen: Seen) -> None:
    with config.patch(inline_inbuilt_nn_modules=False):
        for _ in range(3):
            torch.compile(torch.nn.Sequential(torch.nn.ReLU()), backend="eager")(torch.ones(3))
    compiles = seen.compiles()
    assert {compile.limit for compile in compiles} == {8}
    assert all(compile.entries == 1 for compile in compiles)


def test_a_backward_and_ahead_of_time_compilations_have_no_limit(seen: Seen) -> None:
    from torch._dynamo.backends.common import aot_autograd

    compiled = torch.compile(
        doubled, backend=aot_autograd(fw_compiler=lambda graph, _: graph.forward)
    )
    compiled(torch.ones(3, requires_grad=True)).sum().backward()
    assert room(seen.compiles()) == [(1, 8), (None, None)]


def test_a_limit_set_in_the_main_thread_is_reported_once_if_another_thread_compiles(
    seen: Seen,
) -> None:
    config.recompile_limit = 64
    aside(lambda: call(range(2, 6)))
    report = seen.look()
    assert {compile.limit for compile in report.compiles} == {8}
    (finding,) = found(report, "limit_not_in_force")
    assert (finding.where, finding.count) == (
        f"{FILE}:{doubled.__code__.co_firstlineno} in doubled",
        1,
    )
    assert finding.text == (
        "torch._dynamo.config.recompile_limit = 64 was set in another thread; 8 is in "
        "force in the thread that compiles: "
        "set it in that thread, or call torch.compile with recompile_limit=64 where it has "
        "that option"
    )
    aside(lambda: call(range(6, 8)))
    assert found(seen.look(), "limit_not_in_force") == []


def test_a_limit_that_applies_or_is_set_there_too_is_no_finding(seen: Seen) -> None:
    config.cache_size_limit = 64
    call(range(2, 4))

    def with_its_own() -> None:
        config.recompile_limit = 16
        call(range(4, 5))

    aside(with_its_own)
    report = seen.look()
    assert room(report.compiles) == [(1, 64), (2, 64), (3, 16)]
    assert found(report, "limit_not_in_force") == []
    config.recompile_limit = 8
    aside(lambda: call(range(5, 6)))
    assert found(seen.look(), "limit_not_in_force") == []


@pytest.fixture
def late() -> Iterator[InstalledSources]:
    """The state that `init` leaves if torch was imported and configured before."""
    with torch_unused(), config.patch(accumulated_cache_size_limit=512):
        RECORDER.start()
        sources = InstalledSources(RECORDER)
        sources.install(late=True)
        yield sources
        sources.uninstall()
        RECORDER.stop()


def test_a_limit_that_was_set_before_the_agent_started_is_known(late: InstalledSources) -> None:
    aside(late.install_unbound)
    aside(lambda: call(range(2, 4)))
    (finding,) = found(RECORDER.rotate(1, 0.0, 1.0), "limit_not_in_force")
    assert finding.text == (
        "torch._dynamo.config.accumulated_recompile_limit = 512 was set in another thread; "
        "256 is in force in the thread that compiles: "
        "set it in that thread"
    )
    assert RECORDER.internal_error_count == 0, RECORDER.last_error
