"""A recompile is reported with its reason, its function and its place; recompiles with similar
reasons are one finding."""

from __future__ import annotations

import torch

from tests.agent.sources.conftest import Seen, found


def scaled(x: torch.Tensor, factor: int = 2) -> torch.Tensor:
    return x * factor


LINE = scaled.__code__.co_firstlineno
FILE = "tests/agent/sources/test_a_recompile_names_the_guard_that_failed.py"


def test_the_first_compilation_has_no_reason(seen: Seen) -> None:
    torch.compile(scaled, backend="eager", dynamic=False)(torch.ones(3))
    (compile,) = seen.compiles()
    assert (compile.kind, compile.outcome, compile.reason) == ("first", "ok", "")
    assert (compile.frame, compile.file, compile.line, compile.id) == ("scaled", FILE, LINE, "0/0")


def test_another_shape_is_a_recompile_with_the_guard_as_reason(seen: Seen) -> None:
    compiled = torch.compile(scaled, backend="eager", dynamic=False)
    for length in (3, 4, 5):
        compiled(torch.ones(length))
    report = seen.look()
    assert [compile.kind for compile in report.compiles] == ["first", "recompile", "recompile"]
    assert report.compiles[1].reason == "tensor 'x' size mismatch at index 0. expected 3, actual 4"
    (guard,) = found(report, "guard")
    assert guard.text == "tensor 'x' size mismatch at index 0. expected *, actual *"
    assert (guard.where, guard.count) == (f"{FILE}:{LINE} in scaled", 2)


def test_the_users_source_line_is_not_part_of_a_reason(seen: Seen) -> None:
    compiled = torch.compile(scaled, backend="eager", dynamic=False)
    compiled(torch.ones(3), 2)
    compiled(torch.ones(3), 3)
    reason = seen.compiles()[1].reason
    assert "factor" in reason
    assert "return x" not in reason
    assert "#" not in reason


def test_a_function_with_nothing_to_compile_is_empty(seen: Seen) -> None:
    torch.compile(lambda x: x, backend="eager")(torch.ones(3))
    (compile,) = seen.compiles()
    assert (compile.kind, compile.outcome) == ("empty", "ok")


def test_the_live_start_names_the_frame_until_the_record_comes(seen: Seen) -> None:
    during: list[list[str]] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        during.append(seen.recorder.active_compiles.frames())
        return graph.forward

    torch.compile(scaled, backend=backend)(torch.ones(3))
    assert during == [["scaled"]]
    assert seen.recorder.active_compiles.frames() == []
    assert seen.look().gauges.compiling_for == 0.0


def test_a_lazy_backward_has_the_frame_of_its_forward(seen: Seen) -> None:
    from torch._dynamo.backends.common import aot_autograd

    compiled = torch.compile(
        scaled, backend=aot_autograd(fw_compiler=lambda graph, _: graph.forward)
    )
    compiled(torch.ones(3, requires_grad=True)).sum().backward()
    forward, backward = seen.compiles()
    assert (forward.kind, backward.kind) == ("first", "backward")
    assert (backward.id, backward.frame, backward.line) == (forward.id, "scaled", LINE)
