"""If the same function at the same place compiles again, the compilation is a recompile with its
cause, even if torch gives no reason. Other objects, closures and the functions after a graph break
compile once each, which is no recompile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from compilewatch.sources.dynamo.compile_history import REPEAT_REASONS
from compilewatch.wire.messages import Compile

from tests.agent.ground_truth.cases import PROGRAMS
from tests.agent.sources.conftest import Seen, found

FILE = "tests/agent/ground_truth/test_a_program_knows_its_own_recompiles.py"
HERE = torch.ones(3)


def kinds(compiles: list[Compile]) -> list[tuple[str, str]]:
    return [(compile.kind, compile.reason_kind) for compile in compiles]


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def start_over() -> None:
    torch._dynamo.reset()


RESET_AT = f"{FILE}:{start_over.__code__.co_firstlineno + 1} in start_over"


def test_each_frame_of_a_program_that_resets_torch_compiles_first_once(seen: Seen) -> None:
    exec(
        compile((PROGRAMS / "reset.py").read_text(), str(PROGRAMS / "reset.py"), "exec"),
        {"__name__": "reset"},
    )
    report = seen.look()
    assert Counter(kinds(report.compiles)) == {("first", ""): 2, ("recompile", "reset"): 4}
    assert {compile.reason for compile in report.compiles} == {
        "",
        "compiled again after torch._dynamo.reset()",
    }
    guards = found(report, "guard")
    assert [(guard.text, guard.count) for guard in guards] == [
        (REPEAT_REASONS["reset"], 2),
        (REPEAT_REASONS["reset"], 2),
    ]
    assert guards[0].where == "tests/agent/ground_truth/programs/reset.py:7 in broken"


def test_a_reset_at_each_epoch_is_reported_with_its_caller_and_count(seen: Seen) -> None:
    step = torch.compile(doubled, backend="eager")
    for _ in range(12):
        start_over()
        step(HERE)
    report = seen.look()
    assert Counter(kinds(report.compiles)) == {("first", ""): 1, ("recompile", "reset"): 11}
    (fact,) = [fact for fact in report.facts if fact.kind == "reset"]
    assert fact.data == {"where": RESET_AT, "count": 12}
    start_over()
    (fact,) = [fact for fact in seen.look().facts if fact.kind == "reset"]
    assert fact.data == {"where": RESET_AT, "count": 1}


def test_after_a_reset_each_layer_and_shape_recompiles_because_of_the_reset(seen: Seen) -> None:
    stack = [
        torch.compile(torch.nn.Sequential(kind()), backend="eager", dynamic=False)
        for kind in (torch.nn.ReLU, torch.nn.GELU)
    ]
    for _ in range(2):
        for layer in stack:
            layer(torch.ones(3))
            layer(torch.ones(4))
        torch._dynamo.reset()
    compiles = seen.compiles()
    assert kinds(compiles[:4]) == [("first", ""), *[("recompile", "guard")] * 3]
    assert kinds(compiles[4:]) == [("recompile", "reset")] * 4


def test_an_unobserved_reset_is_detected_from_torchs_numbers(seen: Seen) -> None:
    for source in seen.sources:
        if source.name == "recompile_limit":
            source.uninstall()
    step = torch.compile(doubled, backend="eager")
    for _ in range(3):
        step(HERE)
        torch._dynamo.reset()
    assert kinds(seen.compiles()) == [("first", ""), ("recompile", "reset"), ("recompile", "reset")]


def test_code_created_for_each_request_is_a_recompile(seen: Seen) -> None:
    for request in range(4):
        made: dict[str, Callable[..., torch.Tensor]] = {}
        exec(f"def generated(x):\n    return x * {request}", made)
        torch.compile(made["generated"], backend="eager")(HERE)
    report = seen.look()
    assert kinds(report.compiles) == [("first", ""), *[("recompile", "new code object")] * 3]
    (guard,) = found(report, "guard")
    assert (guard.text, guard.where, guard.count) == (
        REPEAT_REASONS["new code object"],
        "<string>:1 in generated",
        3,
    )


def test_a_compilation_that_fails_at_each_call_is_reported_as_failing_again(seen: Seen) -> None:
    def broken(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        raise OSError("no C++ compiler here")

    compiled = torch.compile(doubled, backend=broken)
    for _ in range(4):
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
            compiled(HERE)
    report = seen.look()
    assert kinds(report.compiles) == [("first", "failure"), *[("recompile", "failed again")] * 3]
    assert report.compiles[1].reason.startswith(
        f"{REPEAT_REASONS['failed again']}; it failed: BackendCompilerFailed: "
    )
    assert "no C++ compiler here" in report.compiles[1].reason
    assert [(guard.text, guard.count) for guard in found(report, "guard")] == [
        (REPEAT_REASONS["failed again"], 3)
    ]
    assert [error.count for error in found(report, "compile_error")] == [4]


def scaled_by(factor: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * factor

    return scaled


def test_other_objects_closures_and_lambdas_of_one_line_are_no_recompiles(seen: Seen) -> None:
    def broken(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        raise OSError("no C++ compiler here")

    with torch._dynamo.config.patch(inline_inbuilt_nn_modules=False):
        for kind in (torch.nn.ReLU, torch.nn.GELU, torch.nn.SiLU):
            torch.compile(torch.nn.Sequential(kind()), backend="eager")(HERE)
    for job in (lambda x: x + 1, lambda x: x + 2):
        torch.compile(job, backend="eager")(HERE)
    for _ in range(2):
        torch.compile(doubled, backend="eager", isolate_recompiles=True)(HERE)
    for kind in (torch.nn.ReLU, torch.nn.GELU):
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
            torch.compile(torch.nn.Sequential(kind(), kind()), backend=broken)(HERE)
    report = seen.look()
    assert [
        compile.reason_kind for compile in report.compiles if compile.reason_kind in REPEAT_REASONS
    ] == []
    torch.compile(scaled_by(2), backend="eager")(HERE)
    torch.compile(scaled_by(3), backend="eager")(HERE)
    assert kinds(seen.compiles()) == [("first", ""), ("recompile", "guard")]


def test_two_breaks_of_one_line_are_two_functions(seen: Seen) -> None:
    @torch.compile(backend="eager")
    def broken(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() if print(end="") else x.cos()) + (1 if print(end="") else 2)

    broken(HERE)
    assert "recompile" not in {kind for kind, _ in kinds(seen.compiles())}
