"""Torch warns once that a frame is at its limit and is silent afterwards: the agent keeps reporting
the frame as eager."""

from __future__ import annotations

import logging

import pytest
import torch

from tests.agent.sources.conftest import Seen, eager_fallbacks


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def exceed(limit: int = 2) -> None:
    with torch._dynamo.config.patch(recompile_limit=limit):
        compiled = torch.compile(scaled, backend="eager", dynamic=False)
        for length in range(2, 2 + limit + 4):
            compiled(torch.ones(length))


def test_the_limit_is_reported_once_with_its_name_and_the_last_reason(seen: Seen) -> None:
    exceed(limit=2)
    report = seen.look()
    (fact,) = eager_fallbacks(report)
    assert fact.data == {
        "frame": "scaled",
        "cause": "limit",
        "file": "tests/agent/sources/test_a_frame_over_the_recompile_limit_runs_eager.py",
        "line": scaled.__code__.co_firstlineno,
        "limit_name": "recompile_limit",
        "limit": 2,
        "reason": "tensor 'x' size mismatch at index 0. expected 3, actual 4",
    }
    assert report.gauges.degraded_frames == 1


def test_the_refused_attempt_is_a_skipped_recompile(seen: Seen) -> None:
    exceed(limit=2)
    assert [(compile.kind, compile.outcome) for compile in seen.compiles()] == [
        ("first", "ok"),
        ("recompile", "ok"),
        ("recompile", "skipped"),
    ]


def test_the_limit_is_detected_even_if_torch_logs_nothing(seen: Seen) -> None:
    logger = logging.getLogger("torch._dynamo.convert_frame")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        exceed(limit=2)
    finally:
        logger.setLevel(level)
    (fact,) = eager_fallbacks(seen.look())
    assert (fact.data["frame"], fact.data["cause"]) == ("scaled", "limit")
    assert "limit_name" not in fact.data


def test_after_a_reset_the_frame_may_fall_back_again(seen: Seen) -> None:
    exceed()
    torch._dynamo.reset()
    torch.compile(scaled, backend="eager", dynamic=False)(torch.ones(2))
    assert seen.look().gauges.degraded_frames == 0
    torch._dynamo.reset()
    exceed()
    assert len(eager_fallbacks(seen.look())) == 1


def test_a_reset_releases_every_frame_at_once(seen: Seen) -> None:
    exceed()
    assert seen.look().gauges.degraded_frames == 1
    torch._dynamo.reset()
    assert seen.look().gauges.degraded_frames == 0
    exceed()
    torch.compiler.reset()
    assert seen.look().gauges.degraded_frames == 0


def test_with_fullgraph_torch_raises_and_no_frame_falls_back(seen: Seen) -> None:
    compiled = torch.compile(scaled, backend="eager", dynamic=False, fullgraph=True)
    with torch._dynamo.config.patch(recompile_limit=1):
        compiled(torch.ones(2))
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
            compiled(torch.ones(3))
    report = seen.look()
    assert eager_fallbacks(report) == []
    assert report.compiles[-1].outcome == "raised"
