"""Each watched call is counted by how it ran: compiled, partial, eager by a cause, or unknown."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import compilewatch
import pytest
import torch
from compilewatch.recording.recorder import RECORDER
from compilewatch.sources.dynamo import guard_lookups
from compilewatch.sources.dynamo.guard_lookups import make_guard_hook
from compilewatch.wire.messages import Region

from tests.agent.sources.conftest import Seen


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def broken(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def unsplittable(x: torch.Tensor) -> torch.Tensor:
    try:
        with torch.no_grad():
            for _ in range(2):
                torch._dynamo.graph_break()
                x = x + 1
        return x
    finally:
        pass


def watched(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    wrapped: Callable[..., Any] = compilewatch.compile(function, backend="eager", **options)
    return wrapped


def one_region(seen: Seen) -> Region:
    regions = seen.look().regions
    total = Region("all", sum(region.calls for region in regions), runtime=regions[0].runtime)
    for region in regions:
        total.compiled += region.compiled
        total.partial += region.partial
        total.unknown += region.unknown
        total.sampled += region.sampled
        for cause, count in region.eager_by.items():
            total.eager_by[cause] = total.eager_by.get(cause, 0) + count
    return total


def test_calls_that_hit_their_guards_are_compiled(watching: Seen) -> None:
    call = watched(doubled)
    for _ in range(11):
        call(torch.ones(3))
    region = one_region(watching)
    assert (region.calls, region.compiled, region.sampled) == (11, 10, 10)


def test_one_graph_break_still_counts_a_call_once(watching: Seen) -> None:
    call = watched(broken)
    for _ in range(11):
        call(torch.ones(3))
    region = one_region(watching)
    assert (region.calls, region.compiled, region.partial) == (11, 10, 0)


def test_unseen_shapes_after_the_limit_are_eager_and_seen_ones_stay_compiled(
    watching: Seen,
) -> None:
    call = watched(doubled, dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=3):
        for length in (10, 11, 12, 13):
            call(torch.ones(length))
        watching.look()
        for length in range(100, 120):
            call(torch.ones(length))
        for length in (10, 11, 12, 10, 11):
            call(torch.ones(length))
    region = one_region(watching)
    assert region.eager_by == {"limit": 20}
    assert (region.calls, region.compiled, region.unknown) == (25, 5, 0)


def test_a_resumed_part_over_the_limit_makes_the_call_partial(watching: Seen) -> None:
    def stepped(x: torch.Tensor, n: int) -> torch.Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        return x * n

    call = watched(stepped, dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=2, specialize_int=True):
        for n in (2, 3, 4):
            call(torch.ones(3), n)
        watching.look()
        for n in (7, 8, 9):
            call(torch.ones(3), n)
    region = one_region(watching)
    assert (region.calls, region.partial) == (3, 3)


def test_a_frame_torch_skips_is_eager_by_skip(watching: Seen) -> None:
    call = watched(unsplittable)
    for _ in range(6):
        call(torch.ones(3))
    region = one_region(watching)
    assert (region.calls, region.compiled) == (6, 0)
    assert region.eager_by == {"skip": 5}


def test_a_suppressed_error_makes_calls_eager_by_error(watching: Seen) -> None:
    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        raise ValueError("no such device")

    with torch._dynamo.config.patch(suppress_errors=True):
        call = compilewatch.compile(doubled, backend=backend)
        for _ in range(6):
            call(torch.ones(3))
    assert one_region(watching).eager_by == {"error": 5}


def test_a_function_without_a_graph_is_eager_because_of_that(watching: Seen) -> None:
    call = watched(lambda x: x)
    for _ in range(6):
        call(torch.ones(3))
    assert one_region(watching).eager_by == {"no_graph": 5}


def test_lookups_of_other_threads_do_not_count_for_a_call(watching: Seen) -> None:
    call = watched(doubled, dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=1):
        call(torch.ones(3))
        call(torch.ones(4))
        watching.look()
        threads = [
            threading.Thread(target=lambda n=n: [call(torch.ones(n)) for _ in range(200)])
            for n in (3, 5, 3, 6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    region = one_region(watching)
    assert (region.compiled, region.eager_by, region.partial) == (400, {"limit": 400}, 0)


def test_some_seconds_after_a_compilation_lookups_are_counted_part_of_the_time(
    watching: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = next(source for source in watching.sources if source.name == "compiled_calls")
    call = watched(doubled, dynamic=False)
    call(torch.ones(3))
    source.poll(watching.recorder)
    watching.look()
    now = guard_lookups.time.monotonic()

    def pass_time(seconds: range) -> tuple[int, int]:
        for second in seconds:
            monkeypatch.setattr(guard_lookups.time, "monotonic", lambda: now + second + 0.5)  # noqa: B023 - read in this turn
            assert source.poll(watching.recorder) == ("yes", "")
            call(torch.ones(3))
        monkeypatch.undo()
        region = one_region(watching)
        return region.calls, region.sampled

    assert pass_time(range(20)) == (20, 20)
    assert pass_time(range(20, 40)) == (20, 2)
    call(torch.ones(4))
    watching.look()
    assert pass_time(range(40, 50)) == (10, 10)


def test_the_first_calls_are_sampled_even_if_they_come_late(
    watching: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = next(source for source in watching.sources if source.name == "compiled_calls")
    now = guard_lookups.time.monotonic()
    call = compilewatch.watch(doubled, name="late")
    for second in range(0, 100, 5):
        monkeypatch.setattr(guard_lookups.time, "monotonic", lambda: now + second + 0.5)  # noqa: B023 - read in this turn
        source.poll(watching.recorder)
    call(torch.ones(3))
    region = one_region(watching)
    assert (region.calls, region.runtime) == (1, "eager")


def test_the_calls_right_after_a_long_compilation_are_counted(
    watching: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = next(source for source in watching.sources if source.name == "compiled_calls")
    call = watched(doubled)
    call(torch.ones(3))
    now = guard_lookups.time.monotonic()
    watching.recorder.on_compile_start("slow")
    for second in range(60):
        monkeypatch.setattr(guard_lookups.time, "monotonic", lambda: now + second + 0.5)  # noqa: B023 - read in this turn
        source.poll(watching.recorder)
    watching.recorder.on_compile_stop()
    watching.look()
    for _ in range(9):
        call(torch.ones(3))
    region = one_region(watching)
    assert (region.calls, region.compiled) == (9, 9)


def test_guard_collectives_own_the_hook_while_they_are_on(watching: Seen) -> None:
    source = next(source for source in watching.sources if source.name == "compiled_calls")
    assert torch.compiler.set_enable_guard_collectives(True) is False
    assert watching.recorder.lookup_step == 0
    assert source.poll(watching.recorder) == ("no", "guard collectives are on and own torch's hook")
    assert torch.compiler.set_enable_guard_collectives(False) is True
    assert watching.recorder.lookup_step != 0
    assert source.poll(watching.recorder) == ("yes", "")


def test_guard_collectives_switched_on_unnoticed_end_the_count_at_their_first_lookup() -> None:
    imported_early = torch.compiler.set_enable_guard_collectives
    seen = Seen(RECORDER)
    source = next(source for source in seen.sources if source.name == "compiled_calls")
    call = watched(doubled)
    call(torch.ones(3))
    imported_early(True)
    try:
        call(torch.ones(3))
        assert RECORDER.lookup_step == 0
        assert source.poll(RECORDER) == ("no", "guard collectives are on and own torch's hook")
        for _ in range(3):
            call(torch.ones(3))
        region = one_region(seen)
        assert (region.calls, region.sampled, region.unknown) == (5, 0, 0)
    finally:
        seen.uninstall()
        assert imported_early(False) is True
        RECORDER.stop()


def test_active_guard_collectives_keep_the_hook() -> None:
    torch.compiler.set_enable_guard_collectives(True)
    try:
        seen = Seen()
        assert seen.answers["compiled_calls"][0] == "no"
        assert seen.recorder.lookup_step == 0
        seen.uninstall()
    finally:
        assert torch.compiler.set_enable_guard_collectives(False) is True


def test_the_previous_hooks_answer_is_torchs_answer(seen: Seen) -> None:
    asked: list[bool] = []

    def refuse(hit: bool) -> bool:
        asked.append(hit)
        return False

    hook = make_guard_hook(seen.recorder, refuse, itertools.count())
    assert hook(True) is False
    assert asked == [True]
    assert (seen.recorder.get_thread_state().hits, seen.recorder.get_thread_state().misses) == (
        0,
        1,
    )
