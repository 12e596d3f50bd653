"""Uninstalling restores functions that are still ours, keeps functions that others have bound
since, and installing twice changes nothing."""

from __future__ import annotations

import logging
from typing import Any

import torch
import torch._dynamo.utils as utils
from torch._C._dynamo.eval_frame import set_guard_complete_hook

from tests.agent.sources.conftest import Seen

LOGGERS = (
    "torch._dynamo.convert_frame",
    "torch._inductor.graph.__perf_hints",
    "torch._inductor.cudagraph_utils.__cudagraphs",
)


def hook_now() -> Any:
    present = set_guard_complete_hook(None)
    set_guard_complete_hook(present)
    return present


def state() -> list[object]:
    loggers = [logging.getLogger(name) for name in LOGGERS]
    logs = [(logger.level, list(logger.handlers), list(logger.filters)) for logger in loggers]
    return [
        utils.log_compilation_event,
        utils.record_chromium_event_internal,
        torch.compiler.set_enable_guard_collectives,
        hook_now(),
        *logs,
    ]


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_everything_is_restored() -> None:
    before = state()
    seen = Seen()
    assert all(now is not then for now, then in zip(state()[:4], before[:4], strict=True))
    seen.uninstall()
    assert state() == before


def test_uninstalling_twice_is_harmless() -> None:
    before = state()
    seen = Seen()
    seen.uninstall()
    seen.uninstall()
    assert state() == before


def test_installing_twice_reports_each_compilation_once(seen: Seen) -> None:
    for source in seen.sources:
        assert source.install(seen.recorder) == seen.answers[source.name]
    torch.compile(doubled, backend="eager")(torch.ones(3))
    assert len(seen.compiles()) == 1


def test_a_function_bound_after_ours_is_kept(seen: Seen) -> None:
    ours = utils.log_compilation_event
    heard = []

    def theirs(metrics: Any) -> None:
        heard.append(metrics.compile_id)
        ours(metrics)

    utils.log_compilation_event = theirs
    try:
        seen.uninstall()
        assert utils.log_compilation_event is theirs
        torch.compile(doubled, backend="eager")(torch.ones(3))
        assert heard == ["0/0"]
        assert seen.compiles() == []
    finally:
        utils.log_compilation_event = torch._utils_internal.log_compilation_event


def test_a_guard_hook_set_after_ours_is_kept(seen: Seen) -> None:
    def theirs(hit: bool) -> bool:
        return hit

    set_guard_complete_hook(theirs)
    try:
        seen.uninstall()
        assert hook_now() is theirs
    finally:
        set_guard_complete_hook(None)
