"""A torch without one of the private names: the rest still works, and the capability names the
missing part."""

from __future__ import annotations

import pytest
import torch
import torch._dynamo.utils as utils
from compilewatch.recording.recorder import Recorder
from compilewatch.sources.dynamo.compilations import Compilations
from compilewatch.sources.dynamo.guard_lookups import CompiledCalls
from compilewatch.wire.messages import Compile


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def compiles_without(
    names: list[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[tuple[str, str], list[Compile]]:
    originals = {name: getattr(utils, name) for name in names}
    recorder, source = Recorder(), Compilations()
    recorder.start()
    for name in names:
        monkeypatch.delattr(utils, name)
    answer = source.install(recorder)
    for name, value in originals.items():
        monkeypatch.setattr(utils, name, value, raising=False)
    compiled = torch.compile(doubled, backend="eager", dynamic=False)
    compiled(torch.ones(2))
    compiled(torch.ones(3))
    source.uninstall()
    assert recorder.internal_error_count == 0, recorder.last_error
    return answer, recorder.rotate(1, 0.0, 1.0).compiles


def test_without_events_the_record_alone_gives_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, compiles = compiles_without(["record_chromium_event_internal"], monkeypatch)
    assert answer == ("partly", "this torch has no record_chromium_event_internal")
    assert [compile.kind for compile in compiles] == ["first", "recompile"]
    assert {"total", "dynamo", "aot"} <= compiles[0].seconds.keys()
    assert sum(compiles[0].seconds.values()) <= 2 * compiles[0].seconds["total"] + 1e-9


def test_without_records_the_events_alone_give_the_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, compiles = compiles_without(["log_compilation_event"], monkeypatch)
    assert answer == ("partly", "this torch has no log_compilation_event")
    assert [(compile.kind, compile.frame) for compile in compiles] == [
        ("first", "doubled"),
        ("recompile", "doubled"),
    ]


def test_without_counters_or_breaks_compilations_are_still_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer, compiles = compiles_without(["counters", "graph_break_reasons"], monkeypatch)
    assert answer == (
        "partly",
        "no cache counts: this torch has no counters; no graph breaks: this torch has no "
        "graph_break_reasons",
    )
    assert [compile.cache for compile in compiles] == [{}, {}]


def test_without_both_callbacks_the_answer_is_no(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, compiles = compiles_without(
        ["log_compilation_event", "record_chromium_event_internal"], monkeypatch
    )
    assert answer[0] == "no"
    assert compiles == []


def test_without_a_guard_hook_calls_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, source = Recorder(), CompiledCalls()
    monkeypatch.delattr(torch._C._dynamo.eval_frame, "set_guard_complete_hook")
    assert source.install(recorder) == ("no", "this torch has no set_guard_complete_hook")
    assert recorder.lookup_step == 0
    source.uninstall()


def test_an_unknown_record_is_read_as_far_as_possible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder, source = Recorder(), Compilations()
    recorder.start()
    source.install(recorder)
    utils.log_compilation_event(object())
    source.uninstall()
    (compile,) = recorder.rotate(1, 0.0, 1.0).compiles
    assert (compile.kind, compile.outcome, compile.frame) == ("first", "ok", "")
