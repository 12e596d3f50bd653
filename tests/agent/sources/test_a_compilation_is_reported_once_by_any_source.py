"""Records that stop, arrive late or arrive by another way: every compilation is reported exactly
once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo.utils as utils
from compilewatch.sources.dynamo import compilations

from tests.agent.sources.conftest import Seen


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.fixture
def bound() -> Iterator[Callable[[Callable[..., Any]], None]]:
    """Replaces our function with another, as a job might."""
    before = utils.log_compilation_event

    def bind(theirs: Callable[..., Any]) -> None:
        utils.log_compilation_event = theirs

    yield bind
    utils.log_compilation_event = before


def compile_lengths(*lengths: int) -> None:
    compiled = torch.compile(doubled, backend="aot_eager", dynamic=False)
    for length in lengths:
        compiled(torch.ones(length))


def poll_later(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A poll after every expected record has arrived."""
    now = time.monotonic()
    monkeypatch.setattr(compilations.time, "monotonic", lambda: now + 2.0)
    answer = next(source for source in seen.sources if source.name == "compilations").poll(
        seen.recorder
    )
    monkeypatch.undo()
    assert answer is not None
    return answer


def test_a_binding_that_bypasses_ours_costs_detail_and_no_compilation(
    seen: Seen, bound: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bound(lambda metrics: None)
    compile_lengths(2, 3, 4)
    answer = poll_later(seen, monkeypatch)
    assert answer == ("partly", "log_compilation_event was replaced by other code")
    told = [
        (compile.kind, compile.outcome, compile.frame, compile.reason_kind, compile.backend)
        for compile in seen.compiles()
    ]
    assert told == [
        ("first", "ok", "doubled", "", "aot_eager"),
        ("recompile", "ok", "doubled", "guard", "aot_eager"),
        ("recompile", "ok", "doubled", "guard", "aot_eager"),
    ]


def test_a_binding_that_calls_ours_reports_nothing_twice(
    seen: Seen, bound: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = utils.log_compilation_event
    bound(lambda metrics: ours(metrics))
    compile_lengths(2, 3)
    poll_later(seen, monkeypatch)
    assert [(compile.kind, compile.id) for compile in seen.compiles()] == [
        ("first", "0/0"),
        ("recompile", "0/1"),
    ]


def test_a_record_that_arrives_after_the_wait_is_not_reported_again(
    seen: Seen, bound: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, late = utils.log_compilation_event, []
    bound(late.append)
    compile_lengths(2, 3)
    poll_later(seen, monkeypatch)
    for record in late:
        ours(record)
    assert [(compile.kind, compile.id) for compile in seen.compiles()] == [
        ("first", "0/0"),
        ("recompile", "0/1"),
    ]


def test_records_switched_off_and_on_again_change_no_count(seen: Seen) -> None:
    compiled = torch.compile(doubled, backend="eager", dynamic=False)
    for length, on in ((2, True), (3, False), (4, True), (5, False)):
        with torch._dynamo.config.patch(log_compilation_metrics=on):
            compiled(torch.ones(length))
    assert [compile.id for compile in seen.compiles()] == ["0/0", "0/1", "0/2", "0/3"]


def test_a_compilation_that_waits_for_its_record_holds_no_tensor_of_the_job(
    seen: Seen, bound: Callable[..., None]
) -> None:
    import gc
    import weakref

    bound(lambda metrics: None)
    tensor = torch.ones(5)
    gone = weakref.ref(tensor)
    torch.compile(doubled, backend="eager")(tensor)
    del tensor
    gc.collect()
    assert gone() is None


def test_uninstalling_reports_pending_compilations(bound: Callable[..., None]) -> None:
    seen = Seen()
    bound(lambda metrics: None)
    compile_lengths(2)
    assert seen.compiles() == []
    seen.uninstall()
    assert [compile.id for compile in seen.compiles()] == ["0/0"]
