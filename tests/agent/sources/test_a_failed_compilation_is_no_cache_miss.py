"""A compilation that failed leaves nothing that a cache could hold: it has no cache answer and no
cause of a miss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from compilewatch.sources.inductor.cache_miss_reasons import MissCauses
from compilewatch.wire.messages import Report

from tests.agent.sources.conftest import HERE, Seen, found


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    """The caches are watched too, in a new folder."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    watcher = Seen(here=(*HERE, "caches"))
    yield watcher
    watcher.uninstall()


def looked(seen: Seen) -> Report:
    """The window, with the explanations that the agent's thread adds before it closes."""
    MissCauses.of(seen.recorder).explain_queued()
    return seen.look()


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2.5


WITHOUT_COMPILER = {"cpp.cxx": ("no-such-compiler",)}


def test_a_compilation_that_fails_at_each_call_has_no_answer_and_no_cause(seen: Seen) -> None:
    compiled = torch.compile(scaled, dynamic=False)
    for size in range(4, 9):
        with (
            torch._inductor.config.patch(WITHOUT_COMPILER),
            pytest.raises(torch._inductor.exc.InductorError),
        ):
            compiled(torch.ones(size))
    report = looked(seen)
    assert [(one.outcome, one.cache, one.miss, one.key) for one in report.compiles] == [
        ("raised", {}, "", "")
    ] * 5
    assert found(report, "cache_miss") == []
    assert sum(finding.count for finding in found(report, "compile_error")) == 5


def test_a_suppressed_failure_has_no_answer_and_no_cause(seen: Seen) -> None:
    with (
        torch._inductor.config.patch(WITHOUT_COMPILER),
        torch._dynamo.config.patch(suppress_errors=True),
    ):
        torch.compile(scaled, dynamic=False)(torch.ones(5))
    report = looked(seen)
    assert [(one.outcome, one.cache, one.miss) for one in report.compiles] == [
        ("suppressed", {}, "")
    ]
    assert found(report, "cache_miss") == []
