"""Every field, event key and variable that the agent reads from torch is absent, empty or of
another type in turn: each compilation is still reported, once, and in a form that every dashboard
accepts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch._dynamo.utils as utils
from compilewatch.sources.dynamo import user_frames
from compilewatch.wire.codec import dumps, loads
from compilewatch.wire.messages import COMPILE_KINDS, DYNAMIC, OUTCOMES, REASON_KINDS, Compile

from dashboard.ingest.validation import report_check
from tests.agent.sources.conftest import Seen

ABSENT = object()
STRANGE = [
    ABSENT,
    None,
    object(),
    "",
    "words",
    "x" * 100_000,
    -1,
    0,
    1 << 80,
    1.5,
    float("nan"),
    float("inf"),
    True,
    False,
    [],
    {"a": 1},
]


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class Asked:
    """Answers like the record and notes the fields that were read."""

    def __init__(self, record: Any) -> None:
        self.__dict__.update(record=record, names=set())

    def __getattr__(self, name: str) -> Any:
        self.names.add(name)
        return getattr(self.record, name)


@pytest.fixture(scope="module")
def records() -> list[Any]:
    """Real records: a first compilation, a recompile, a failure, a lazy backward."""
    from torch._dynamo.backends.common import aot_autograd

    kept: list[Any] = []
    original = utils.log_compilation_event
    utils.log_compilation_event = kept.append
    try:
        torch._dynamo.reset()
        compiled = torch.compile(
            scaled, backend=aot_autograd(fw_compiler=lambda graph, _: graph.forward), dynamic=False
        )
        compiled(torch.ones(2))
        compiled(torch.ones(3, requires_grad=True)).sum().backward()
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(
                lambda x: (x + 1, torch._dynamo.graph_break()), backend="eager", fullgraph=True
            )(torch.ones(2))
    finally:
        utils.log_compilation_event = original
    assert [(record.is_forward, record.fail_type) for record in kept] == [
        (True, None),
        (True, None),
        (False, None),
        (True, "Unsupported"),
    ]
    return kept


def read_names(seen: Seen, records: list[Any]) -> list[str]:
    names: set[str] = set()
    for record in records:
        asked = Asked(record)
        utils.log_compilation_event(asked)
        names |= asked.names
    assert len(seen.look().compiles) == len(records)
    return sorted(names)


def is_legal(compile: Compile) -> bool:
    """Whether a dashboard accepts the compilation, and a person understands it."""
    from compilewatch.wire.messages import Report

    report = Report((1, 1), (0.0, 1.0), compiles=[compile])
    report_check(loads(Report, dumps(report)))
    return (
        compile.kind in COMPILE_KINDS
        and compile.outcome in OUTCOMES
        and compile.reason_kind in ("", *REASON_KINDS)
        and compile.dynamic in ("", *DYNAMIC)
        and all(seconds >= 0 for seconds in compile.seconds.values())
    )


def test_each_field_that_is_read_may_hold_anything(seen: Seen, records: list[Any]) -> None:
    names = read_names(seen, records)
    assert {"co_name", "recompile_reason", "fail_type", "duration_us"} <= set(names)
    for name in names:
        for value in STRANGE:
            for record in records:
                fields = {
                    field: getattr(record, field) for field in names if hasattr(record, field)
                }
                fields[name] = value
                if value is ABSENT:
                    del fields[name]
                utils.log_compilation_event(SimpleNamespace(**fields))
                (compile,) = seen.look().compiles
                assert is_legal(compile), (name, value, compile)


def test_an_object_unlike_a_record_is_reported_as_unknown(seen: Seen) -> None:
    for thing in (None, 7, "text", object(), {}):
        utils.log_compilation_event(thing)
        (compile,) = seen.look().compiles
        assert is_legal(compile)
        assert compile.frame == ""


@pytest.mark.parametrize("name", user_frames.COMPILE_VARIABLES)
@pytest.mark.parametrize(
    "value", [ABSENT, None, object(), "words"], ids=["absent", "None", "an object", "words"]
)
def test_each_variable_of_torchs_compiler_may_hold_anything(
    seen: Seen, monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    from compilewatch.sources.dynamo import compile_reporter

    original = user_frames.read_compiling_locals

    def changed() -> dict[str, Any]:
        found = dict(original())
        if found:
            found.pop(name, None)
        if found and value is not ABSENT:
            found[name] = value
        return found

    monkeypatch.setattr(compile_reporter, "read_compiling_locals", changed)
    compiled = torch.compile(scaled, backend="eager", dynamic=False)
    for length in (2, 3):
        assert compiled(torch.ones(length)).tolist() == [2.0] * length
    compiles = seen.compiles()
    assert [(compile.kind, compile.outcome, compile.frame) for compile in compiles] == [
        ("first", "ok", "scaled"),
        ("recompile", "ok", "scaled"),
    ]
    assert all(map(is_legal, compiles))


@pytest.mark.parametrize("key", ["name", "ts", "ph", "args", "tid", "pid", "cat"])
@pytest.mark.parametrize(
    "value",
    [ABSENT, None, object(), "words", float("nan")],
    ids=["absent", "None", "an object", "words", "nan"],
)
def test_each_part_of_an_event_may_hold_anything(
    monkeypatch: pytest.MonkeyPatch, key: str, value: Any
) -> None:
    seen = Seen()
    ours = utils.record_chromium_event_internal

    def changed(event: dict[str, Any]) -> None:
        told = {part: known for part, known in event.items() if part != key}
        ours(told if value is ABSENT else {**told, key: value})

    monkeypatch.setattr(utils, "record_chromium_event_internal", changed)
    try:
        compiled = torch.compile(scaled, backend="eager", dynamic=False)
        for length in (2, 3):
            compiled(torch.ones(length))
        compiles = seen.look_despite_errors().compiles
    finally:
        seen.uninstall()
        monkeypatch.undo()
    assert [(compile.kind, compile.outcome, compile.frame) for compile in compiles] == [
        ("first", "ok", "scaled"),
        ("recompile", "ok", "scaled"),
    ]
    assert all(map(is_legal, compiles))
    assert seen.recorder.active_compiles.frames() == []
    assert seen.recorder.buffers is not None
