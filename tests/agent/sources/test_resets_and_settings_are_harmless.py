"""A job may reset torch, clear its counters, switch its records off, and compile from many threads
while the agent runs."""

from __future__ import annotations

import threading
from collections import Counter

import torch
from compilewatch.sources.dynamo.compilation_metrics import RACE

from tests.agent.sources.conftest import Seen, eager_fallbacks, found


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_cleared_counters_and_resets_lose_and_repeat_nothing(seen: Seen) -> None:
    for _ in range(3):
        torch.compile(doubled, backend="aot_eager")(torch.ones(3))
        torch._dynamo.utils.counters.clear()
        torch._dynamo.reset()
        torch.compiler.reset()
        torch._dynamo.utils.clear_compilation_metrics()
    assert [(compile.kind, compile.reason_kind) for compile in seen.compiles()] == [
        ("first", ""),
        *[("recompile", "reset")] * 2,
    ]


def test_a_break_after_a_reset_counts_like_the_one_before(seen: Seen) -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        print(end="")
        return x * 2

    for _ in range(3):
        torch.compile(broken, backend="eager")(torch.ones(3))
        torch._dynamo.reset()
    [finding] = found(seen.look(), "graph_break")
    assert finding.count == 3


def test_with_records_off_the_events_report_what_they_can(seen: Seen) -> None:
    compiled = torch.compile(doubled, backend="eager", dynamic=False)
    with torch._dynamo.config.patch(log_compilation_metrics=False, recompile_limit=2):
        for length in (2, 3, 4):
            compiled(torch.ones(length))
    report = seen.look()
    told = [(compile.kind, compile.outcome, compile.frame) for compile in report.compiles]
    assert told == [
        ("first", "ok", "doubled"),
        ("recompile", "ok", "doubled"),
        ("recompile", "skipped", "doubled"),
    ]
    assert all(compile.seconds["total"] > 0 for compile in report.compiles)
    assert len(eager_fallbacks(report)) == 1


def test_twelve_threads_on_a_cold_function_race_to_the_limit(seen: Seen) -> None:
    compiled = torch.compile(doubled, backend="aot_eager")
    together = threading.Barrier(12)

    def call() -> None:
        together.wait(30)
        compiled(torch.ones(3))

    threads = [threading.Thread(target=call) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    report = seen.look()
    assert seen.recorder.active_compiles.frames() == []
    reasons = Counter(
        (compile.outcome, compile.kind, compile.reason_kind) for compile in report.compiles
    )
    assert reasons == {
        ("ok", "first", ""): 1,
        ("ok", "recompile", "race"): 7,
        ("skipped", "recompile", "limit"): 4,
    }
    assert {compile.reason for compile in report.compiles} == {"", RACE}
    assert [(finding.kind, finding.text, finding.count) for finding in report.findings] == [
        ("guard", RACE, 11)
    ]
    (fact,) = eager_fallbacks(report)
    assert (fact.data["frame"], fact.data["cause"], fact.data["limit"]) == ("doubled", "limit", 8)
    assert fact.data["reason"] == RACE
