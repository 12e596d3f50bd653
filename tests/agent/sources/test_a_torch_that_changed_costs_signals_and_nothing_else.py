"""Each private name of torch that the agent uses is removed or changed in turn: the job continues,
nothing counts twice, and the capability table names the missing signal."""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from compilewatch.recording.call_recorder import MAX_INTERNAL_ERRORS
from compilewatch.runtime import torch_internals
from compilewatch.runtime.torch_internals import (
    ALL_NAMES,
    BUILD_GUARDS,
    CALL_AHEAD,
    CALL_PACKAGE,
    CUDA_MEMORY,
    GEMM_CHOICES,
    LOAD_ARTIFACTS,
    LOAD_PACKAGE,
    PARTITIONS,
    RECORDING,
    SAVE_ARTIFACTS,
    WRAP_COMPILED,
    TorchName,
)
from compilewatch.sources.function_patch import MAX_FAULTS, FunctionPatch
from compilewatch.wire.messages import Report
from torch._C._dynamo.eval_frame import set_guard_complete_hook

from tests.agent.sources.conftest import BOUND, HERE, Seen, found

MODULES = (
    *BOUND,
    "torch._inductor.output_code",
    "torch._inductor.cudagraph_trees",
    "torch._inductor.package",
    "torch.compiler",
)
_OF_PROGRAMS = ("generators", "guard_filters", "late_hooks")
EVERY = (
    *HERE,
    *_OF_PROGRAMS,
    "caches",
    "autotune_cache",
    "mega_cache",
    "cuda_graph_recordings",
    "torchscript",
    "aotinductor",
    "aot_compile",
    "memory",
)
AT_MOST_PARTLY = ("fallbacks", "cuda_graph_skips", "torchscript", "memory", "caches")
"""Capabilities that are partial on this machine with every torch."""


def raises(*args: object, **kwargs: object) -> None:
    raise TypeError("it wants other arguments")


FAULTS: dict[str, Any] = {"gone": None, "of another kind": object(), "raising": raises}


def bound_names() -> list[TorchName]:
    """The names through which torch calls the agent."""
    for module in MODULES:
        importlib.import_module(module)
    with patch.object(
        FunctionPatch, "__init__", autospec=True, side_effect=FunctionPatch.__init__
    ) as made:
        Seen().uninstall()
    return [call.args[1] for call in made.call_args_list]


HEARD = bound_names()
WRAPPED = (
    *(BUILD_GUARDS, WRAP_COMPILED, GEMM_CHOICES, PARTITIONS, RECORDING, SAVE_ARTIFACTS),
    *(LOAD_ARTIFACTS, LOAD_PACKAGE, CALL_PACKAGE, CALL_AHEAD),
)
# A name of torch's own that raises when torch calls it fails with and without the agent.
CASES = [
    (name, fault)
    for name in ALL_NAMES
    for fault in FAULTS
    if fault != "raising" or name not in (*HEARD, *WRAPPED)
]


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def broken(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def the_job() -> list[list[float]]:
    """A first compilation, a recompile, the limit, a break, a stance, an error."""
    results = []
    with torch._dynamo.config.patch(recompile_limit=2):
        compiled = torch.compile(scaled, backend="aot_eager", dynamic=False)
        results += [compiled(torch.ones(length)).tolist() for length in (1, 2, 3, 4, 1)]
    results.append(torch.compile(broken, backend="eager")(torch.ones(2)).tolist())
    with torch.compiler.set_stance("force_eager"):
        results.append(compiled(torch.ones(1)).tolist())

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        raise ValueError("no such device")

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
        torch.compile(lambda x: x - 1, backend=backend)(torch.ones(2))
    return results


RESULTS = [[2.0], [2.0, 2.0], [2.0] * 3, [2.0] * 4, [2.0], [4.0, 4.0], [2.0]]
TOLD = [
    ("first", "ok"),
    ("recompile", "ok"),
    ("recompile", "skipped"),
    ("first", "ok"),
    ("first", "ok"),
    ("first", "raised"),
]


def polled(seen: Seen) -> dict[str, tuple[str, str]]:
    answers = dict(seen.answers)
    for source in seen.sources:
        answers[source.name] = source.poll(seen.recorder) or answers[source.name]
    return answers


def ran(seen: Seen) -> Report:
    assert the_job() == RESULTS
    for source in seen.sources:
        source.poll(seen.recorder)
    return seen.look_despite_errors()


@pytest.fixture
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_with_every_name_in_place_the_job_is_reported_in_full() -> None:
    seen = Seen(here=EVERY)
    try:
        report = ran(seen)
        assert [(compile.kind, compile.outcome) for compile in report.compiles] == TOLD
        assert sum(finding.count for finding in found(report, "graph_break")) == 1
        grades = {
            name: grade for name, (grade, _) in polled(seen).items() if name not in AT_MOST_PARTLY
        }
        assert set(grades.values()) == {"yes"}, grades
    finally:
        seen.uninstall()


@pytest.mark.parametrize(
    ("name", "fault"),
    CASES,
    ids=lambda value: value.short_name if isinstance(value, TorchName) else value,
)
def test_a_changed_name_is_reported_and_costs_only_its_signal(
    name: TorchName, fault: str, monkeypatch: pytest.MonkeyPatch, quiet: None
) -> None:
    find = TorchName.find

    def changed(self: TorchName, default: Any = None) -> Any:
        if self != name:
            return find(self, default)
        return default if fault == "gone" else FAULTS[fault]

    monkeypatch.setattr(TorchName, "find", changed)
    seen = Seen(here=EVERY)
    try:
        report, answers = ran(seen), polled(seen)
    finally:
        seen.uninstall()
    assert seen.recorder.internal_error_count == 0, seen.recorder.last_error
    told = [(compile.kind, compile.outcome) for compile in report.compiles]
    assert told == TOLD
    if name.lost_capability and not (
        name == CUDA_MEMORY and fault == "raising"
    ):  # without CUDA the name is not called, so nothing is lost
        assert any(name.short_name in why for grade, why in answers.values() if grade != "yes"), (
            answers
        )


PUBLIC = r'"(__file__|__version__|is_compiling|cuda)"'
"""The names that torch promises to keep."""


def test_no_source_accesses_torch_in_another_way() -> None:
    agent = Path(torch_internals.__file__).parents[1]
    for path in (*agent.glob("sources/*.py"), *agent.glob("*.py")):
        for line in path.read_text().splitlines():
            other = re.search(r'sys\.modules\.get\("(?!torch)', line)  # a module of another package
            if (
                path.name not in ("torch_names.py", "jax.py")
                and not other
                and re.search(r"(getattr|setattr)\(.*sys\.modules", line)
            ):
                assert re.search(PUBLIC, line), f"{path.name}: {line.strip()}"


CALLED = [
    (),
    (object(),),
    (1, 2, 3),
    ({},),
    ({"name": 1, "ts": None, "ph": object()},),
    ("it", object()),
]


@pytest.mark.parametrize("name", HEARD, ids=lambda name: name.short_name)
def test_a_name_that_torch_calls_in_another_way_is_ignored_from_then_on(
    name: TorchName, monkeypatch: pytest.MonkeyPatch, quiet: None
) -> None:
    owner, attribute = name.owner()
    original = name.find()

    def tolerant(*args: Any, **kwargs: Any) -> Any:
        return None if kwargs.pop("strange", False) or args in CALLED else original(*args, **kwargs)

    monkeypatch.setattr(owner, attribute, tolerant)
    seen = Seen()
    try:
        for _ in range(MAX_FAULTS):
            for args in CALLED:
                assert name.find()(*args) is None
            assert name.find()(strange=True) is None
        before = len(seen.look_despite_errors().compiles)
        report, answers = ran(seen), polled(seen)
    finally:
        seen.uninstall()
        set_guard_complete_hook(
            None
        )  # an agent that assumes the collectives own the slot does not use it
    assert name.find() is tolerant
    assert seen.recorder.internal_error_count < MAX_INTERNAL_ERRORS / 2
    assert before <= len(CALLED) * MAX_FAULTS
    told = [(compile.kind, compile.outcome) for compile in report.compiles]
    assert told == TOLD
    if seen.recorder.internal_error_count:
        assert any(
            f"{name.short_name} is called in an unknown way" in why for _, why in answers.values()
        )
