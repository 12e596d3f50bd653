"""Every fault in a hook is counted as an internal error; the job's call returns its own result."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.agent.sources.conftest import Seen


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def fail(*args: object, **kwargs: object) -> None:
    raise RuntimeError("of the agent's own making")


METHODS = [
    "on_compile_start",
    "on_compile_stop",
    "record_compile",
    "record_finding",
    "record_eager_fallback",
]


def broken(seen: Seen, monkeypatch: pytest.MonkeyPatch, method: str) -> torch.Tensor:
    monkeypatch.setattr(seen.recorder, method, fail)
    compiled = torch.compile(doubled, backend="eager", dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=2):
        for length in (1, 2, 3, 4):
            result: torch.Tensor = compiled(torch.ones(length))
    return result


@pytest.mark.parametrize("method", METHODS)
def test_an_error_in_a_compile_hook_is_counted_and_kept_from_the_job(
    seen: Seen, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    assert broken(seen, monkeypatch, method).tolist() == [2, 2, 2, 2]
    assert seen.recorder.internal_error_count > 0
    assert seen.recorder.last_error == "RuntimeError: of the agent's own making"


def test_an_error_in_the_guard_hook_is_counted_and_kept_from_the_job(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        @property
        def call(self) -> None:
            raise RuntimeError("of the agent's own making")

    compiled = torch.compile(doubled, backend="eager")
    compiled(torch.ones(3))
    monkeypatch.setattr(seen.recorder, "thread_local", Broken())
    assert compiled(torch.ones(3)).tolist() == [2, 2, 2]
    assert seen.recorder.internal_error_count == 1


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes_through_a_hook(
    seen: Seen, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    def interrupt(*args: object) -> None:
        raise stop

    monkeypatch.setattr(seen.recorder, "on_compile_start", interrupt)
    with pytest.raises(stop):
        torch.compile(doubled, backend="eager")(torch.ones(3))


def test_a_broken_backend_raises_its_own_error_and_is_reported(seen: Seen) -> None:
    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        raise ValueError("no such device at 0x7f3d4654ee10")

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="no such device"):
        torch.compile(doubled, backend=backend)(torch.ones(3))
    report = seen.look()
    assert [compile.outcome for compile in report.compiles] == ["raised"]
    assert "no such device at 0x*" in report.compiles[0].reason
    assert [finding.kind for finding in report.findings] == ["compile_error"]


def test_a_suppressed_error_is_reported_and_the_frame_is_eager(seen: Seen) -> None:
    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        raise ValueError("no such device")

    with torch._dynamo.config.patch(suppress_errors=True):
        assert torch.compile(doubled, backend=backend)(torch.ones(3)).tolist() == [2, 2, 2]
    report = seen.look()
    assert [compile.outcome for compile in report.compiles] == ["suppressed"]
    assert report.gauges.degraded_frames == 1
    assert [(fact.data["frame"], fact.data["cause"]) for fact in report.facts] == [
        ("doubled", "error")
    ]
